"""Twenty publishers in twenty threads; one receiver takes all of their topics by a pattern."""

import threading
from collections import Counter

from um_cffi import Context, Source, WildcardReceiver

PUBLISHERS, MESSAGES = 20, 500


def publish(ctx: Context, number: int, start: threading.Event) -> None:
    with Source(ctx, f"sensors/{number:02}") as source:
        source.wait_receivers()
        start.wait()
        source.send_many((b"reading %d" % each for each in range(MESSAGES)), flush=True)
        done.wait()  # a source that closes takes its session along


start, done = threading.Event(), threading.Event()
counts: Counter[str] = Counter()
with Context() as publishing, Context() as ctx, WildcardReceiver(ctx, "^sensors/") as receiver:
    threads = [threading.Thread(target=publish, args=(publishing, n, start)) for n in range(PUBLISHERS)]
    for thread in threads:
        thread.start()
    receiver.wait_ready(PUBLISHERS, timeout=60)
    start.set()
    for number, message in enumerate(receiver, 1):
        counts[message.topic] += 1
        if number == PUBLISHERS * MESSAGES:
            break
    done.set()
    for thread in threads:
        thread.join()
print(len(counts), "topics,", sum(counts.values()), "messages")
