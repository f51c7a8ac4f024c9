"""A service: it serves until it is told to stop by SIGTERM or Ctrl-C, then says what it did and ends cleanly."""

import os
import signal
import threading

from um_cffi import Context, Receiver, Source

stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
signal.signal(signal.SIGINT, lambda *_: stop.set())


def serve(receiver: Receiver) -> int:
    served = 0
    for batch in receiver.batches(timeout=0.2):  # an empty batch every 0.2 s without messages
        served += sum(1 for _ in batch.messages())
        if stop.is_set() and not batch:
            return served
    return served


with Context() as ctx, Receiver(ctx, "jobs") as receiver, Source(ctx, "jobs") as source:
    source.wait_receivers()
    source.send_many([b"one", b"two", b"three"], flush=True)
    threading.Timer(3.0, os.kill, (os.getpid(), signal.SIGTERM)).start()  # what systemd does
    print("served", serve(receiver))
print("stopped")
