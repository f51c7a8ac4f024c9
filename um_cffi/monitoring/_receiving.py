"""Monitor: records from the topic of statistics, or from datagrams, with their hosts.

It takes what has come when it is asked, on the thread or event loop that asks; nothing is decoded before. What waits is
bounded by the queue of a receiver, or by the buffer of a socket, and what is let in by rates.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from um_cffi.errors import InvalidArgument
from um_cffi.monitoring._gate import Gate, Rates
from um_cffi.monitoring._records import Record
from um_cffi.monitoring.packets import TOPIC, Decoder

if TYPE_CHECKING:
    from um_cffi import Batch, Context, Receiver, WildcardReceiver

PORT = 2933
AT_ONCE = 500  # records decoded before somebody else gets a turn
QUEUE_BYTES = 16 << 20
SOCKET_BYTES = 4 << 20
_RXQ_OVFL = 40  # SO_RXQ_OVFL of Linux: datagrams dropped so far come with each datagram


class Arrival(NamedTuple):
    """A record as it came."""

    record: Record  #: what it tells
    origin: str  #: address of the host that sent it, as the network says; "local" from shared memory


@dataclass(frozen=True)
class MonitorCounts:
    """What a Monitor has done with what came."""

    packets: int  #: decoded
    records: int  #: in these
    malformed: dict[str, int]  #: packets by reason
    refused: int  #: packets beyond the rates, not decoded
    dropped: int  #: packets lost before they could be taken, as they came faster


def host_of(source: str) -> str:
    """The address in a source string; "local" for transports without one."""
    parts = source.split(":", 2)
    return parts[1] if len(parts) > 2 and parts[1].count(".") == 3 else "local"


class Monitor:
    """Receives monitoring records in the context `ctx`, or without one as datagrams at `udp`.

    In a context they come by the topic `topic`, or by all topics that match `pattern`. `udp` is "ADDRESS:PORT" to
    listen at (loopback and 2933 are what is left out); with `group` that multicast group is joined on the interface
    with this address. `separator` is that of csv. `rates` says how many records a second are taken; what comes faster
    is counted and not decoded.

    poll() and records() wait on the calling thread, apoll() on an event loop; use one of them on one thread at a time.
    close() ends it; the context stays. InvalidArgument for what is no address, OSError where a socket cannot be had.
    """

    def __init__(
        self,
        ctx: Context | None = None,
        *,
        topic: str = TOPIC,
        pattern: str | None = None,
        udp: str | None = None,
        group: str | None = None,
        separator: str = ",",
        rates: Rates | None = None,
        queue_bytes: int = QUEUE_BYTES,
    ) -> None:
        if (ctx is None) == (udp is None):
            raise InvalidArgument("Monitor(): needs either a context or udp, and not both")
        if len(separator.encode()) != 1:
            raise InvalidArgument(f"Monitor(separator={separator!r}): must be one character")
        self._decoder = Decoder(separator)
        self._gate = Gate(rates or Rates(), time.monotonic())
        self._receiver: Receiver | WildcardReceiver | None = None
        self._socket: socket.socket | None = None
        self._dropped = 0
        self._topic = topic if pattern is None else pattern
        if ctx is not None:
            from um_cffi import Receiver, WildcardReceiver

            if pattern is None:
                self._receiver = Receiver(ctx, topic, queue_bytes=queue_bytes, on_full="drop_oldest", events=False)
            else:
                self._receiver = WildcardReceiver(
                    ctx, pattern, queue_bytes=queue_bytes, on_full="drop_oldest", events=False
                )
        elif udp is not None:
            self._socket = _listen(udp, group)

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take no more. Any thread that does not poll meanwhile; again without effect."""
        if self._receiver is not None:
            self._receiver.close()
        if self._socket is not None:
            self._socket.close()

    @property
    def address(self) -> str:
        """Where datagrams are listened for, "ADDRESS:PORT"; "" in a context."""
        if self._socket is None:
            return ""
        host, port = self._socket.getsockname()
        return f"{host}:{port}"

    @property
    def place(self) -> str:
        """Where records come from, for people."""
        return f"datagrams at {self.address}" if self._socket is not None else f"topic {self._topic}"

    def poll(self, timeout: float | None = None) -> list[Arrival]:
        """What has come, at most some thousand records; waits up to `timeout` seconds (None: for ever) for the first.

        Empty when the time is over, and when nothing that came was a record.
        """
        if self._receiver is not None:
            batch = self._receiver.recv_batch(max_messages=AT_ONCE, timeout=timeout)
            return [] if batch is None else self._of_batch(batch, time.monotonic())
        assert self._socket is not None
        ready, _, _ = select.select([self._socket], [], [], timeout)
        return self._of_socket(time.monotonic()) if ready else []

    async def apoll(self, timeout: float | None = None) -> list[Arrival]:
        """As poll(), for asyncio: the event loop goes on meanwhile."""
        if self._receiver is not None:
            batch = await self._receiver.arecv_batch(max_messages=AT_ONCE, timeout=timeout)
            return [] if batch is None else self._of_batch(batch, time.monotonic())
        assert self._socket is not None
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not ready.done():
                ready.set_result(None)

        # Not wait_for(): before Python 3.12 it loses a cancellation that comes together with a datagram.
        timer = None if timeout is None else loop.call_later(timeout, wake)
        loop.add_reader(self._socket, wake)
        try:
            await ready
        finally:
            loop.remove_reader(self._socket)
            if timer is not None:
                timer.cancel()
        return self._of_socket(time.monotonic())

    def records(self, timeout: float | None = None) -> Iterator[Record]:
        """The records as they come, until none has come for `timeout` seconds (None: without end)."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            found = self.poll(None if end is None else max(0.0, end - time.monotonic()))
            if timeout is not None and found:
                end = time.monotonic() + timeout
            for each in found:
                yield each.record
            if end is not None and time.monotonic() >= end and not found:
                return

    def counts(self) -> MonitorCounts:
        """What was done with what came so far."""
        dropped = self._dropped if self._receiver is None else self._receiver.queue_stats().dropped
        decoder = self._decoder
        return MonitorCounts(
            decoder.packets, decoder.records, dict(decoder.malformed), self._gate.refused, int(dropped)
        )

    def _of_batch(self, batch: Batch, now: float) -> list[Arrival]:
        records = batch.records
        hosts = [host_of(source) for source in batch.sources]
        sources = records["source"].tolist()
        room: dict[str, int] = {}
        for source in sources:
            room[hosts[source]] = room.get(hosts[source], 0) + 1
        for host, wanted in room.items():
            room[host] = self._gate.take(host, wanted, now)
        found: list[Arrival] = []
        view = batch.view
        for source, offset, length in zip(sources, records["offset"].tolist(), records["length"].tolist()):
            host = hosts[source]
            if room[host]:
                room[host] -= 1
                self._decode(view[offset : offset + length].tobytes(), host, found)
        return found

    def _of_socket(self, now: float) -> list[Arrival]:
        assert self._socket is not None
        found: list[Arrival] = []
        for _ in range(AT_ONCE):
            try:
                data, ancillary, _, sender = self._socket.recvmsg(0xFFFF, 64)
            except BlockingIOError:
                break
            for level, kind, value in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, _RXQ_OVFL) and len(value) >= 4:
                    (self._dropped,) = struct.unpack_from("=I", value)
            if self._gate.take(sender[0], 1, now):
                self._decode(data, sender[0], found)
        return found

    def _decode(self, packet: bytes, host: str, found: list[Arrival]) -> None:
        for record in self._decoder.decode(packet):
            found.append(Arrival(record, host))


def _listen(at: str, group: str | None) -> socket.socket:
    host, _, port = at.rpartition(":")
    if not port.isdigit() or int(port) > 0xFFFF:
        raise InvalidArgument(f"udp {at}: must be ADDRESS:PORT with a port up to 65535")
    host = host or "127.0.0.1"
    try:
        interface = socket.inet_aton(host)
        joined = socket.inet_aton(group) if group else b""
    except OSError:
        raise InvalidArgument(f"udp {at}{f' in {group}' if group else ''}: must be IPv4 addresses") from None
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        with contextlib.suppress(OSError):  # then what is lost in the kernel is not counted
            made.setsockopt(socket.SOL_SOCKET, _RXQ_OVFL, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BYTES)
        if group:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((group, int(port)))
            made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined + interface)
        else:
            made.bind((host, int(port)))
    except BaseException:
        made.close()
        raise
    return made


def records(ctx: Context | None = None, timeout: float | None = None, *, udp: str | None = None) -> Iterator[Record]:
    """The records that come to a context, or as datagrams at `udp`, as a Monitor takes them.

    Ends when none has come for `timeout` seconds (None: never).
    """
    with Monitor(ctx, udp=udp) as monitor:
        yield from monitor.records(timeout)
