"""The binding over LBT-IPC: nothing of its own is needed, so the usual ways to send and receive are tried, between
contexts of one process and between two processes.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import numpy as np
import pytest
from pairs import SLOW, collect, loopback, numbered, pair, payloads, until

from um_cffi import Message, MessageType, Receiver, Source, UmError

IPC = {"transport": "lbtipc", "transport_lbtipc_behavior": "receiver_paced"}
COUNT = 20000


def test_callbacks_get_everything_in_order() -> None:
    got: list[bytes] = []
    with pair(lambda message: got.append(bytes(message.data)), source_options=IPC) as (source, _):
        rows = numbered(COUNT)
        assert source.send_many(rows, flush=True) == COUNT
        until(lambda: len(got) == COUNT)
        assert got == [row.tobytes() for row in rows]


def test_batches_get_everything_in_order() -> None:
    with pair(source_options=IPC) as (source, receiver):
        rows = numbered(COUNT)
        source.send_many(rows, flush=True)
        batches = collect(receiver, COUNT)
        got = [payload for batch in batches for payload in payloads(batch)]
        assert [payload for payload in got if payload] == [row.tobytes() for row in rows]
        assert any(name.startswith("LBT-IPC:") for batch in batches for name in batch.sources)


def test_async_for_and_messages_kept_beyond_the_source() -> None:
    async def main() -> list[Message]:
        kept: list[Message] = []
        with pair(source_options=IPC) as (source, receiver):
            for i in range(100):
                source.send(b"%05d" % i, flush=True)
            async for message in receiver:
                if message.type == MessageType.DATA:
                    kept.append(message)
                if len(kept) == 100:
                    return kept
        raise AssertionError("the loop ended")

    kept = asyncio.run(main())
    assert [bytes(message.data) for message in kept] == [b"%05d" % i for i in range(100)]


def test_a_message_larger_than_a_datagram_is_reassembled() -> None:
    payload = np.random.default_rng(1).integers(0, 256, 1_000_000, dtype=np.uint8).tobytes()
    got: list[bytes] = []
    with pair(lambda message: got.append(bytes(message.data)), source_options=IPC) as (source, _):
        source.send(payload, flush=True)
        until(lambda: got)
        assert got == [payload]


SENDER = """
import sys
from pairs import SLOW, loopback, numbered
from um_cffi import Source
with loopback() as context, Source(context, "far", options={"transport": "lbtipc"}) as source:
    source.wait_receivers(1, 30 * SLOW)
    source.send_many(numbered(int(sys.argv[1])), flush=True)
    sys.stdin.read()
"""


def test_two_processes() -> None:
    with loopback() as context, Receiver(context, "far") as receiver:
        process = subprocess.Popen(
            [sys.executable, "-c", SENDER, str(COUNT)],
            stdin=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        got = [payload for batch in collect(receiver, COUNT) for payload in payloads(batch)]
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30 * SLOW) == 0
        assert [payload for payload in got if payload] == [row.tobytes() for row in numbered(COUNT)]


def test_a_session_that_cannot_be_made_raises_with_the_remedy() -> None:
    with loopback() as context, pytest.raises(UmError) as caught:
        Source(context, "huge", options={**IPC, "transport_lbtipc_transmission_window_size": str(1 << 39)})
    assert "no room for a segment" in str(caught.value)
