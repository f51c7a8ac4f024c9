"""Hot failover: several sources send the same numbered messages, and a receiver gets each number once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from um_cffi._many import Many, nothing_sent
from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import shown
from um_cffi.binding.attributes import Attributes
from um_cffi.binding.deferred import is_array, np, stats
from um_cffi.binding.lifetime import milliseconds
from um_cffi.binding.sent_columns import SentColumns
from um_cffi.errors import InvalidArgument, check, raise_last
from um_cffi.properties import Extras, made_of
from um_cffi.receiver import Receiver
from um_cffi.source import Source

if TYPE_CHECKING:
    from datetime import timedelta

    import numpy.typing as npt
    from typing_extensions import Unpack

    from um_cffi.binding.option_types import SourceOptions
    from um_cffi.binding.sent_columns import ChannelColumn, PropertyColumns
    from um_cffi.context import Context
    from um_cffi.dispatch import EventQueue
    from um_cffi.events import SourceEvent
    from um_cffi.pdm import Definition
    from um_cffi.properties import PropertyValue
    from um_cffi.source import Payload, Payloads
    from um_cffi.stats import HotFailoverCounts

_WIDTHS = {32: lib.LBM_SRC_SEND_EX_FLAG_HF_32, 64: lib.LBM_SRC_SEND_EX_FLAG_HF_64}


class HFSource(Source):
    """A source of hot failover in the context `ctx`: each message has a number, the same on every source of `topic`.

    Two or more programs, or contexts on separate networks, have an HFSource of the same topic and send the same
    messages under the same numbers; an HFReceiver gives each number once, whichever source brought it first, so that
    one may fail. Who numbers the messages, and how, is the application's: numbers go up, and may have gaps. `bits` is
    the width of the numbers, 32 or 64; it must be the same on all sources of the topic.

    Messages that are sent without a number, which are those of requests too, are not merged: each HFReceiver gets them
    as they come, from every source. Everything else is as with Source: `on_event`, `queue`,
    `retain`, `options` or keywords, threads and errors. Numbered messages of one source are sent by one thread at a
    time, so that they go out in their order. All transports but LBT-SMX (InvalidArgument).
    """

    _create_source = lib.lbm_hf_src_create

    def __init__(
        self,
        ctx: Context,
        topic: str,
        on_event: Callable[[SourceEvent], object] | None = None,
        queue: EventQueue | None = None,
        *,
        bits: Literal[32, 64] = 32,
        retain: int | str | timedelta | None = None,
        options: Mapping[str, object] | None = None,
        **keywords: Unpack[SourceOptions],
    ) -> None:
        if bits not in _WIDTHS:
            raise InvalidArgument(f"HFSource of {shown(topic)}: bits {shown(bits)}: must be 32 or 64")
        self._bits = int(bits)
        super().__init__(ctx, topic, on_event, queue, retain=retain, options=options, **keywords)

    @property
    def bits(self) -> int:
        """Width of its numbers: 32 or 64."""
        return self._bits

    def _numbered(
        self,
        call: str,
        number: int | None,
        optional: bool,
        properties: Mapping[str, PropertyValue] | None,
        channel: int | None = None,
    ) -> Extras | None:
        """What goes with a message beside its payload."""
        if number is None:
            if optional:
                raise InvalidArgument(f"{call} of the {self._name}: an optional message has a number: give one")
            return self._extras(properties, channel)
        try:
            value = number.__index__()
        except AttributeError:
            raise InvalidArgument(
                f"{call} of the {self._name}: number {shown(number)}: must be an int, not {type(number).__name__}"
            ) from None
        if not 0 <= value < 1 << self._bits:
            raise InvalidArgument(
                f"{call} of the {self._name}: number {value}: must be 0 or more, and have at most {self._bits} bits"
            )
        extras = Extras(made_of(properties), None if channel is None else self._extras_of_channel(channel)._channel)
        extras.sent.hf_flags = _WIDTHS[self._bits] | (lib.LBM_SRC_SEND_EX_FLAG_HF_OPTIONAL if optional else 0)
        extras.sent.hf_number = value
        return extras

    def send(
        self,
        data: Payload,
        flush: bool = False,
        *,
        number: int | None = None,
        optional: bool = False,
        properties: Mapping[str, PropertyValue] | None = None,
        channel: int | None = None,
    ) -> None:
        """Send one message, `data`, under a `number`; None: without one, past the merge of the receivers.

        An `optional` message may be missing on other sources: receivers with the option hf_optional_messages 0 do not
        want them. Waiting, `flush`, `properties`, `channel` and errors are those of Source.send(); InvalidArgument for
        a number that does not have the width of the source.
        """
        extras = self._numbered("send()", number, optional, properties, channel)
        if not self._attempt(data, flush, extras):
            self._send_waiting(data, flush, extras)

    def send_nowait(
        self,
        data: Payload,
        flush: bool = False,
        *,
        number: int | None = None,
        optional: bool = False,
        properties: Mapping[str, PropertyValue] | None = None,
        channel: int | None = None,
    ) -> None:
        """Send `data` as send() does, but WouldBlock instead of waiting: nothing is sent then.

        `flush`, `number`, `optional`, `properties` and `channel` are those of send().
        """
        if not self._attempt(data, flush, self._numbered("send_nowait()", number, optional, properties, channel)):
            raise_last()

    async def asend(
        self,
        data: Payload,
        flush: bool = False,
        *,
        number: int | None = None,
        optional: bool = False,
        properties: Mapping[str, PropertyValue] | None = None,
        channel: int | None = None,
    ) -> None:
        """Send `data` as send() does, for asyncio: waits without blocking the event loop.

        `flush`, `number`, `optional`, `properties` and `channel` are those of send(). Cancelled while waiting: nothing
        is sent. One task at a time, so that numbers keep their order.
        """
        await self._asend(data, flush, self._numbered("asend()", number, optional, properties, channel))

    def send_many(
        self,
        messages: Payloads | Mapping[Any, Any],
        flush: bool = False,
        *,
        dtype: npt.DTypeLike | None = None,
        definition: Definition | None = None,
        numbers: int | npt.ArrayLike | None = None,
        timeout: float | None = None,
        channels: ChannelColumn | None = None,
        properties: PropertyColumns | None = None,
    ) -> int:
        """Send many numbered messages with one call that loops in C; returns their number.

        `numbers` is that of the first message, which each further one follows by 1, or an array of integers, one for
        each message; None: without numbers, past the merge of the receivers. With numbers, TimedOut after `timeout`
        seconds in which the session had no room for a message; None, and iterables of buffers, wait without bound.
        Everything else, `channels`, `properties`, `flush` and errors with their `sent` included, is as with
        Source.send_many(). InvalidArgument for numbers that do not have the width of the source, or that are not as
        many as the messages; nothing is sent of a part with such.
        """
        if numbers is None:
            if timeout is not None:
                raise InvalidArgument(f"send_many() of the {self._name} with a timeout: only with numbers")
            more = {"dtype": dtype, "definition": definition, "channels": channels, "properties": properties}
            return super().send_many(messages, flush, **more)  # type: ignore[arg-type]
        patience = None if timeout is None else milliseconds(timeout) / 1000
        with nothing_sent():
            columns = None if channels is None and properties is None else SentColumns(self._name, channels, properties)
            numbering = _Numbering(self._name, self._bits, numbers)
        return Many(self, columns, numbering, patience).send(messages, flush, dtype, definition)

    def send_rcv_reset(self, number: int) -> None:
        """Tell receivers that `number` comes next, whatever came before, as after a restart with lower numbers.

        They give up what waits for missing numbers and get an event HF_RESET. Every source of the topic has to send
        its own; the first one rules. It goes out at once, behind what was sent before; waits for room as send() does.
        InvalidArgument for a number that does not have the width of the source.
        """
        extras = self._reset("send_rcv_reset()", number)
        if not self._attempt(b"", True, extras):
            self._send_waiting(b"", True, extras)

    async def asend_rcv_reset(self, number: int) -> None:
        """Tell receivers that `number` comes next, as send_rcv_reset() does, for asyncio."""
        await self._asend(b"", True, self._reset("asend_rcv_reset()", number))

    def _reset(self, call: str, number: int) -> Extras:
        if number is None:
            raise InvalidArgument(f"{call} of the {self._name}: number None: must be an int")
        extras = self._numbered(call, number, False, None)
        assert extras is not None
        extras.sent.hf_reset = 1
        return extras


class _Numbering:
    """The numbers of the messages of one send_many()."""

    def __init__(self, source: str, bits: int, numbers: int | npt.ArrayLike) -> None:
        self._source = source
        self._end = 1 << bits
        self.flags: int = _WIDTHS[bits]
        self._first = 0
        self._column: npt.NDArray[np.uint64] | None = None
        if hasattr(numbers, "__index__") and not is_array(numbers):
            self._first = numbers.__index__()
            return
        given = np.asarray(numbers)
        if given.ndim != 1 or (given.dtype.kind not in "iu" and len(given)):
            raise self._wrong(f"numbers {shown(numbers)}: must be an int, or an array of integers of one dimension")
        if len(given) and (int(given.min()) < 0 or int(given.max()) >= self._end):
            wrong = int(given.min()) if int(given.min()) < 0 else int(given.max())
            raise self._wrong(f"number {wrong}: must be 0 or more, and have at most {bits} bits")
        self._column = np.ascontiguousarray(given, np.uint64)

    def _wrong(self, text: str) -> InvalidArgument:
        return InvalidArgument(f"send_many() of the {self._source}: {text}")

    def part(self, before: int, count: int) -> tuple[int, npt.NDArray[np.uint64] | None]:
        """Of `count` messages behind `before` others: the first number, and all of them where they are a column."""
        if self._column is not None:
            if before + count > len(self._column):
                raise self._wrong(f"{len(self._column)} numbers for more messages: give one for each")
            column = self._column[before : before + count]
            return int(column[0]) if count else 0, column
        first = self._first + before
        if first < 0 or first + count > self._end:
            bits = self._end.bit_length() - 1
            raise self._wrong(
                f"numbers {first} to {first + count - 1}: must be 0 or more, and have at most {bits} bits"
            )
        return first, None

    def check_end(self, sent: int) -> None:
        """InvalidArgument when there are more numbers than messages."""
        if self._column is not None and len(self._column) != sent:
            raise self._wrong(f"{len(self._column)} numbers for {sent} messages: give one for each")


class HFReceiver(Receiver):
    """A receiver of hot failover in the context `ctx`: what the sources of `topic` send, each number once.

    It merges what comes from all HFSource objects of the topic, by the numbers of the messages. `hf_number` of a
    message is its number; with numbers of 32 bits it is `sequence_number`, too, which is 0 otherwise. Losses are those
    of numbers that no source has brought; losses of one source are not told. Messages that came without a number, of
    plain sources too, are given as they come, marked by MessageFlags.HF_PASS_THROUGH. A reset is an event HF_RESET.

    Options: `hf_duplicate_delivery` 1 gives all copies, those behind the first one marked by MessageFlags.HF_DUPLICATE;
    `hf_optional_messages` 0 leaves out the optional ones. The order is that of the numbers; of arrival with
    `ordered_delivery` 0 or -1. Everything else is as with Receiver: `on_message`, `on_event`, `queue`, `direct`,
    `events`, `on_full`, `replay`, `options` or keywords, `queue_bytes` (bytes that may wait for Python), the ways to
    take messages, `channels`, threads and errors. For a pattern, make a WildcardReceiver with the option `hf_receiver`.
    """

    _hf: Any = None

    def _create_receiver(self, ctx: Context, callback: Any, collector: Any) -> Any:
        topic_holder, holder = ffi.new("lbm_topic_t **"), ffi.new("lbm_hf_rcv_t **")
        with Attributes("receiver", self._chosen) as attributes:
            check(lib.lbm_rcv_topic_lookup(topic_holder, ctx._ctx, self._topic.encode(), attributes.pointer))
        beginning = self._beginning()
        check(
            lib.um_hf_rcv_create_on_channels(
                holder, ctx._ctx, topic_holder[0], callback, collector, ffi.NULL, *beginning
            )
        )
        self._hf = holder[0]
        return lib.lbm_rcv_from_hf_rcv(holder[0])

    def _delete_receiver(self) -> int:
        return int(lib.lbm_hf_rcv_delete(self._hf))

    def merge_counts(self) -> HotFailoverCounts:
        """What has become of the numbers that the sources sent: delivered, come again, held, given up."""
        with self._using():
            return stats.read_counts(
                stats.HotFailoverCounts, "um_hf_stats_t", lambda out: lib.um_hf_rcv_stats(self._hf, out)
            )
