"""Know when publisher and subscriber have found each other, instead of sleeping."""

from __future__ import annotations

from um_cffi import Context, Receiver, Source, SourceEvent, TimedOut


def on_source_event(event: SourceEvent) -> None:
    print("source:", getattr(event.type, "name", event.type))


with Context() as sending, Context() as receiving:
    source = Source(sending, "Ready", on_source_event)
    try:
        source.wait_receivers(timeout=0.1)
    except TimedOut:
        print("nobody yet")
    receiver = Receiver(receiving, "Ready")
    source.wait_receivers()  # a receiving context is connected: whatever is sent now reaches it
    receiver.wait_ready()  # and here its session has begun
    source.send(b"not lost", flush=True)
    message = receiver.recv(timeout=10)
    print([bytes(message)] if message else "nothing came")
