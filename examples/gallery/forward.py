"""A bridge: what comes over TCP on one context goes on over shared memory on another, without a look at it."""

import threading

from um_cffi import Context, Receiver, Source

COUNT = 10_000


def forward(receiver: Receiver, onward: Source) -> None:
    for batch in receiver.batches():
        onward.send_many(batch, flush=True)  # events are left out


with Context() as near, Context() as far:
    receiver, onward = Receiver(near, "feed"), Source(far, "feed copy", transport="lbtsmx")
    last, source = Receiver(far, "feed copy"), Source(near, "feed")
    source.wait_receivers()
    last.wait_ready()
    bridge = threading.Thread(target=forward, args=(receiver, onward))
    bridge.start()
    source.send_many((b"%d" % number for number in range(COUNT)), flush=True)
    got = [int(bytes(message)) for _, message in zip(range(COUNT), last)]
    receiver.close()  # ends the bridge
    bridge.join()
print(got == list(range(COUNT)), last.closed)
