"""Three topics into one loop, with a timeout: a selector watches the descriptors of the receivers."""

import selectors

from um_cffi import Context, Receiver, Source

TOPICS = ("orders", "fills", "quotes")

with Context() as ctx, selectors.DefaultSelector() as selector:
    for topic in TOPICS:
        receiver = Receiver(ctx, topic)
        selector.register(receiver, selectors.EVENT_READ, receiver)
    for topic in TOPICS:
        source = Source(ctx, topic)
        source.wait_receivers()
        source.send_many([f"{topic} {number}".encode() for number in range(2)], flush=True)

    got: list[str] = []
    while ready := selector.select(timeout=5.0):  # an empty list: nothing for so long
        for key, _ in ready:
            message = key.data.recv(timeout=0)
            if message is not None:
                got.append(bytes(message).decode())
    print(*sorted(got), sep="\n")
    print("quiet for five seconds")
