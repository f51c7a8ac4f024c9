"""Ask, and answer: a responder as a decorated coroutine, requests that are awaited or iterated."""

from __future__ import annotations

import asyncio

from um_cffi import Context, RequestMessage, Source

PRICES = {b"apples": b"3", b"pears": b"4"}


async def main() -> None:
    async with Context() as ctx, Source(ctx, "prices") as source:

        @ctx.responder("prices")
        async def price(message: RequestMessage) -> bytes | None:
            return PRICES.get(message.data)  # None: no answer

        await asyncio.wait_for(price.await_ready(), 10)
        response = await ctx.request(source, b"apples")
        print("apples:", response.data.decode())
        async for response in ctx.request(source, b"pears", timeout=5, responses=1):
            print("pears:", response.data.decode())
        nobody = [each async for each in ctx.request(source, b"plums", timeout=0.5)]
        print("plums:", nobody)


asyncio.run(main())
