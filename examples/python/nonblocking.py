"""Send without ever waiting: WouldBlock when the session has no room, and the WAKEUP event when it has room again."""

from __future__ import annotations

import threading
import time

from um_cffi import Context, Message, Receiver, Source, SourceEvent, SourceEventType, WouldBlock

COUNT = 50_000
room, done = threading.Event(), threading.Event()
received = blocked = 0


def on_source_event(event: SourceEvent) -> None:
    if event.type == SourceEventType.WAKEUP:
        room.set()


def on_message(message: Message) -> None:
    global received
    received += 1
    if received % 1000 == 0:
        time.sleep(0.002)  # a slow subscriber
    if received == COUNT:
        done.set()


with Context() as sending, Context() as receiving:
    Receiver(receiving, "Paced", on_message, queue_bytes=100_000)
    small = {"transport_session_maximum_buffer": 65536, "transport_tcp_sender_socket_buffer": 20000}
    source = Source(sending, "Paced", on_source_event, options=small)
    source.wait_receivers()
    for number in range(COUNT):
        while True:
            room.clear()
            try:
                source.send_nowait(b"%100d" % number)
                break
            except WouldBlock:
                blocked += 1
                room.wait(0.1)
    source.flush()
    done.wait(60)
print(f"{received} of {COUNT} messages received; the source had to wait: {blocked > 0}")
