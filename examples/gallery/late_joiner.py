"""Receivers that come late: first what the source has kept, then what it sends from now on, in one loop."""

from um_cffi import Context, Receiver, Source

with Context() as ctx, Source(ctx, "orders", retain=1000) as source:
    for number in range(5000):
        source.send(b"order %d" % number)
    source.flush()  # nobody listens yet

    with Context() as there, Receiver(there, "orders", replay=3) as receiver:
        replayed = [bytes(message).decode() for _, message in zip(range(3), receiver)]
        source.send(b"the next one", flush=True)
        message = receiver.recv()
        print(replayed, bytes(message).decode(), message.retransmit)

    with Context() as there, Receiver(there, "orders", replay="all") as receiver:
        numbers = [message.sequence_number for _, message in zip(range(1000), receiver)]
        print(numbers[0], numbers[-1], receiver.counts().lost)
