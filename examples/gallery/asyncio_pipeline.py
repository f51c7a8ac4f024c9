"""asyncio: one task publishes, one works on what comes and sends the results on, one collects them."""

import asyncio

from um_cffi import Context, Receiver, Source

COUNT = 1000


async def publish(source: Source) -> None:
    for number in range(COUNT):
        await source.asend(b"%d" % number, flush=number == COUNT - 1)


async def square(receiver: Receiver, source: Source) -> None:
    async for message in receiver:
        await source.asend(b"%d" % int(bytes(message)) ** 2, flush=True)


async def main() -> None:
    async with Context() as ctx:
        numbers, results = Receiver(ctx, "numbers"), Receiver(ctx, "squares")
        first, second = Source(ctx, "numbers"), Source(ctx, "squares")
        await first.await_receivers()
        await second.await_receivers()
        worker = asyncio.create_task(square(numbers, second))
        await publish(first)
        total, got = 0, 0
        async for message in results:
            total, got = total + int(bytes(message)), got + 1
            if got == COUNT:
                break
        worker.cancel()
        print(got, "squares, sum", total)


asyncio.run(main())
