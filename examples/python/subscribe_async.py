"""Publish and subscribe in one asyncio program, with awaitable back-pressure."""

from __future__ import annotations

import asyncio

from um_cffi import Context, Receiver, Source

COUNT = 1000


async def publish(source: Source) -> None:
    for number in range(COUNT):
        await source.asend(b"%d" % number)  # waits while the session has no room, and the event loop goes on
    source.flush()


async def subscribe(receiver: Receiver) -> int:
    total = received = 0
    async for message in receiver:
        total += int(bytes(message.data))
        received += 1
        if received == COUNT:
            break
    return total


async def main() -> None:
    async with Context() as sending, Context() as receiving:
        receiver, source = Receiver(receiving, "Numbers"), Source(sending, "Numbers")
        await receiver.await_ready()
        _, total = await asyncio.gather(publish(source), subscribe(receiver))
    print(f"the sum of {COUNT} numbers is {total}")


asyncio.run(main())
