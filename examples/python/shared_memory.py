"""Write messages where they lie in shared memory: acquire, fill, complete. Run it without arguments."""

import struct
import threading

from um_cffi import Context, Message, Receiver, Source

COUNT = 100000
TICK = struct.Struct("<Qd")


def main() -> None:
    total, over = 0.0, threading.Event()

    def on_message(message: Message) -> None:
        nonlocal total
        number, price = TICK.unpack_from(message)
        total += price
        if number == COUNT - 1:
            over.set()

    with Context() as ctx, Source(ctx, "ticks", transport="lbtsmx") as source:
        with Receiver(ctx, "ticks", on_message, direct=True) as receiver:  # called on the thread that reads the ring
            source.wait_receivers()
            receiver.wait_ready()
            view = source.acquire(TICK.size)  # one message, one view
            TICK.pack_into(view, 0, 0, 0.5)
            source.complete()
            slot = source.slot(TICK.size)  # one object for all messages
            for number in range(1, COUNT):
                slot.acquire()
                TICK.pack_into(slot, 0, number, 0.5)
                slot.complete()
            over.wait()
        print(f"{COUNT} ticks, sum of prices {total}")


if __name__ == "__main__":
    main()
