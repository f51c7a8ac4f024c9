"""Sources and receivers of hot failover over two links, for test_failover_links.py: `failover.py send|receive ...`.

Topics: "single" has a source on each link and one context that receives (HFReceiver); of "tcp" and "rm" each link has a
context that receives (HFX). Every message is its number and the time when its number was first sent.
"""

from __future__ import annotations

import contextlib
import json
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from um_cffi import HFX, Context, HFReceiver, HFSource, Message, MessageFlags, ReceiverEvent

TICK = 0.002  # seconds between numbers
HANG = 120.0
TOPICS = ("single", "tcp", "rm")
BODY = struct.Struct("=Qq")


def side(link: int, host: int, resolving: int | None = None) -> Context:
    """A context on one link; topics are resolved over the same one, or another."""
    return Context(
        default_interface=f"10.9.{link}.{host}/24",
        resolver_multicast_interface=f"10.9.{resolving or link}.{host}/24",
    )


def send(count: int, slower: int) -> None:
    """`slower`: so many ticks later the second link gets what the first has got."""
    with contextlib.ExitStack() as stack:
        first, second, crossing = (stack.enter_context(each) for each in (side(1, 1), side(2, 1), side(2, 1, 1)))
        links: list[list[HFSource]] = [[], []]
        for topic in TOPICS:
            options: dict[str, Any] = {"transport": "lbtrm"} if topic == "rm" else {}
            for link, ctx in ((0, first), (1, crossing if topic == "single" else second)):
                links[link].append(stack.enter_context(HFSource(ctx, topic, options=options)))
        print("made", flush=True)
        assert sys.stdin.readline()  # receivers have found all
        times: list[int] = []
        begin = time.monotonic()
        for tick in range(count + slower):
            time.sleep(max(0.0, begin + tick * TICK - time.monotonic()))
            if tick < count:
                times.append(time.monotonic_ns())
            for link, late in ((0, 0), (1, slower)):
                number = tick - late
                if 0 <= number < count:
                    for source in links[link]:
                        source.send(BODY.pack(number, times[number]), True, number=number)
        print("sent", flush=True)
        for source in (each for link in links for each in link):
            source.send(b"end", True)
        assert sys.stdin.readline()  # receivers have got all


class Heard:
    """What one receiver got."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.late: list[tuple[int, int]] = []  # when it was sent, and how long it took, in ns
        self.ends = 0
        self.losses = 0

    def on_message(self, message: Message) -> None:
        if message.flags & MessageFlags.HF_PASS_THROUGH:
            self.ends += 1
            return
        number, sent = BODY.unpack(bytes(message))
        assert number == message.hf_number
        self.numbers.append(number)
        self.late.append((sent, time.monotonic_ns() - sent))

    def on_event(self, event: ReceiverEvent) -> None:
        self.losses += "LOSS" in event.type.name


def receive() -> None:
    heard = {topic: Heard() for topic in TOPICS}
    with contextlib.ExitStack() as stack:
        one, other = stack.enter_context(side(1, 2)), stack.enter_context(side(2, 2))
        # Each of its connections leaves by the link of its source.
        any_link = stack.enter_context(Context(resolver_multicast_interface="10.9.1.2/24"))
        for topic, each in heard.items():
            made: Any
            if topic == "single":
                made = HFReceiver(any_link, topic, each.on_message, each.on_event)
            else:
                made = HFX([one, other], topic, each.on_message, each.on_event)
            stack.enter_context(made)
            (made.wait_session if topic == "rm" else made.wait_ready)(2, HANG)
        print("ready", flush=True)
        until(lambda: all(each.ends >= 2 for each in heard.values()))
        print(
            json.dumps(
                {
                    topic: {"numbers": each.numbers, "late": each.late, "losses": each.losses}
                    for topic, each in heard.items()
                }
            ),
            flush=True,
        )


def until(condition: Callable[[], bool]) -> None:
    """The time only catches hangs."""
    over = threading.Event()
    end = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < end, "not all came"
        over.wait(0.02)


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(int(sys.argv[2]), int(sys.argv[3]))
    else:
        receive()
