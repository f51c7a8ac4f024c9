"""Subscribe with a callback for each message.  python subscribe_callback.py [TOPIC [COUNT]]"""

from __future__ import annotations

import sys
import threading

from um_cffi import Context, Message, Receiver, ReceiverEvent

topic = sys.argv[1] if len(sys.argv) > 1 else "Greeting"
count = int(sys.argv[2]) if len(sys.argv) > 2 else 10
done = threading.Event()


def on_message(message: Message) -> None:
    """Called on the context's callback thread."""
    print(f"{message.topic} #{message.sequence_number}: {bytes(message.data).decode()}", flush=True)
    if message.sequence_number + 1 == count:
        done.set()


def on_event(event: ReceiverEvent) -> None:
    """Beginning and end of sessions, losses."""
    print(f"{event.topic}: {getattr(event.type, 'name', event.type)}", file=sys.stderr)


with Context() as ctx, Receiver(ctx, topic, on_message, on_event):
    done.wait(60)
