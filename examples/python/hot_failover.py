"""Hot failover: two sources send the same numbered messages, one dies, and nobody misses anything."""

from __future__ import annotations

from um_cffi import Context, HFReceiver, HFSource, Message

COUNT = 100


def number_of(message: Message | None) -> int:
    assert message is not None, "ten seconds without a message"
    assert message.hf_number is not None
    return message.hf_number


with Context() as ctx, HFReceiver(ctx, "quotes") as receiver, Context() as left, Context() as right:
    dying = HFSource(left, "quotes")
    living = HFSource(right, "quotes")
    dying.wait_receivers(1)
    living.wait_receivers(1)
    numbers = []
    for number in range(COUNT):
        for source in (dying, living):
            if not source.closed:
                source.send(b"191.50", flush=True, number=number, optional=number % 10 == 0)
        numbers.append(number_of(receiver.recv(10)))
        if number == COUNT // 2:
            dying.close()
    print("each number once:", numbers == list(range(COUNT)))
