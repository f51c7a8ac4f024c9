"""A context without a thread: the application runs it, as embedded programs and simulations want it."""

from __future__ import annotations

import threading

from um_cffi import Context, Receiver, Source

COUNT = 5

with Context(operational_mode="sequential") as receiving, Context() as sending:
    receiver = Receiver(receiving, "Sequential")
    source = Source(sending, "Sequential")

    def send() -> None:
        source.wait_receivers()
        for number in range(COUNT):
            source.send(b"step %d" % number, flush=True)

    thread = threading.Thread(target=send)
    thread.start()
    got = 0
    while got < COUNT:
        receiving.process_events(timeout=0.1)  # sockets, timers, topic resolution: everything happens in here
        batch = receiver.recv_batch(timeout=0)
        for message in batch.messages() if batch is not None else ():
            print(bytes(message.data).decode())
            got += 1
    thread.join()
    receiver.close()
