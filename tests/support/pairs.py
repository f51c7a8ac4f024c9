"""A source and what receives from it, on the loopback interface, for tests of the binding."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from um_cffi import Batch, Context, MessageType, Receiver, Source

ROOT = Path(__file__).resolve().parents[2]
SANITIZED = bool(os.environ.get("UM_SANITIZED"))
SLOW = 10 if SANITIZED else 1  # hang limits are stretched under sanitizers
HANG = 60.0 * SLOW  # seconds; only catches hangs
SOAK = bool(os.environ.get("UM_SOAK"))


def scaled(count: int, soak: int | None = None) -> int:
    """How often to do something: fewer times under the sanitizers, `soak` times (if given) in the long run."""
    if SOAK and soak is not None:
        return soak
    return max(1, count // 3) if SANITIZED else count


def loopback(more: Mapping[str, object] | None = None, **options: Any) -> Context:
    """A context that takes any free ports."""
    ports = {"request_tcp_port_low": 0, "request_tcp_port_high": 0}
    ports.update({"transport_tcp_port_low": 0, "transport_tcp_port_high": 0})
    return Context({"default_interface": "127.0.0.1", **ports, **(more or {})}, **options)


def until(condition: Callable[[], object], seconds: float = HANG) -> None:
    """Wait; the time only catches hangs."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.005)


@contextlib.contextmanager
def pair(
    on_message: Any = None,
    on_event: Any = None,
    queue: Any = None,
    topic: str = "news",
    source_options: Mapping[str, object] | None = None,
    **keywords: Any,
) -> Iterator[tuple[Source, Receiver]]:
    """A source and a receiver in contexts of their own that have found each other."""
    with loopback() as sending, loopback() as receiving:
        receiver = Receiver(receiving, topic, on_message, on_event, queue, **keywords)
        source = Source(sending, topic, options=source_options)
        source.wait_receivers(1, HANG)
        receiver.wait_ready(1, HANG)
        yield source, receiver


def payloads(batch: Batch) -> list[bytes]:
    """The messages of a batch as bytes."""
    return [bytes(message.data) for message in batch.messages()]


def collect(receiver: Receiver, count: int, max_messages: int | None = None) -> list[Batch]:
    """Batches until so many messages have come."""
    got: list[Batch] = []
    have = 0
    while have < count:
        batch = receiver.recv_batch(max_messages=max_messages, timeout=HANG)
        assert batch is not None, f"{have} of {count} messages came"
        have += int((batch.records["type"] == MessageType.DATA).sum())
        got.append(batch)
    return got


def run_python(program: str, *arguments: str, seconds: float = 240, status: int = 0, **env: str) -> str:
    """Run a program in an interpreter of its own, in the present network; returns what it printed.

    One that hangs is ended, and shows where its threads are.
    """
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'support'}", **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        try:
            output = process.communicate(timeout=seconds * SLOW)[0]
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)
            output = process.communicate()[0]
    assert process.returncode == status, f"ended with {process.returncode}:\n{output}"
    return output


def figure(output: str, name: str) -> int:
    """The number that a program printed after a word; lines of the log may stand before and behind it."""
    found = re.search(rf"{name} (-?\d+)", output)
    assert found, output
    return int(found.group(1))


def numbered(count: int, size: int = 64) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Messages that begin with their number, as rows."""
    rows = np.zeros((count, size), np.uint8)
    rows[:, :8] = np.arange(count, dtype="<u8").view(np.uint8).reshape(-1, 8)
    return rows


def same(got: Sequence[object], wanted: Sequence[object]) -> bool:
    """Whether two long sequences are equal. Fails with the first difference: pytest's comparison of so many takes
    minutes."""
    for at, (left, right) in enumerate(zip(got, wanted)):
        assert left == right, f"number {at} of {len(wanted)}"
    assert len(got) == len(wanted), f"{len(got)} instead of {len(wanted)}"
    return True
