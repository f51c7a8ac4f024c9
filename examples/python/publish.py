"""Publish: wait for a subscriber, then send numbered messages.  python publish.py [TOPIC [COUNT]]"""

from __future__ import annotations

import sys

from um_cffi import Context, Source

topic = sys.argv[1] if len(sys.argv) > 1 else "Greeting"
count = int(sys.argv[2]) if len(sys.argv) > 2 else 10

with Context() as ctx, Source(ctx, topic) as source:
    source.wait_receivers(timeout=60)
    for number in range(count):
        source.send(f"message {number}".encode(), flush=True)
print(f"sent {count} messages on {topic}")
