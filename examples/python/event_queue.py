"""Callbacks on a thread of the application: an event queue, dispatched here."""

from __future__ import annotations

import threading

from um_cffi import Context, EventQueue, Message, Receiver, Source, WildcardReceiver

COUNT = 10
received = 0


def on_message(message: Message) -> None:
    global received
    received += 1
    print(f"{threading.current_thread().name}: {bytes(message.data).decode()}")
    if received == COUNT:
        queue.unblock()


queue = EventQueue(queue_size_warning=1000)
with queue, Context() as sending, Context() as receiving, Source(sending, "Jobs") as source:
    jobs = Receiver(receiving, "Jobs", on_message, queue=queue)
    everything = WildcardReceiver(receiving, "^Job", on_message, queue=queue)  # several may share one queue
    jobs.wait_ready()
    everything.wait_ready()
    for number in range(COUNT // 2):
        source.send(f"job {number}".encode(), flush=True)
    queue.dispatch(timeout=10)  # returns after unblock(), or when the time has passed
    receiving.close()  # a queue is closed after the receivers that use it
