"""Receivers of a topic or of a pattern, and the ways to get their messages: callbacks, one by one, batches, asyncio.

Messages are gathered in C, in memory bounded by `queue_bytes`, so that the library never waits for Python. What happens
when it is full is chosen by `on_full`; queue_stats() has the counters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from um_cffi._calling import Calling
from um_cffi._channels import Channels, OnMessage, Subscriptions
from um_cffi._readiness import Readiness
from um_cffi._receiving import OnEvent, OnFull
from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import expect_context, name_bytes
from um_cffi.binding.attributes import Attributes, check_option, merged, read_option, sorted_out
from um_cffi.binding.deferred import stats
from um_cffi.binding.lifetime import counted
from um_cffi.binding.replaying import replay_of, with_meaning
from um_cffi.context import Context
from um_cffi.dispatch import EventQueue
from um_cffi.errors import check

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from um_cffi.binding.option_types import PatternOptions, ReceiverOptions
    from um_cffi.stats import ReceiverCounts, ReceiverStats

QUEUE_BYTES = 64 << 20
"""Default bound of what waits for Python in one receiver: payloads and records."""


class Receiver(Readiness, Calling):
    """A subscriber of one topic in the context `ctx`.

    Without `on_message`, take messages with recv(), `for message in receiver`, recv_batch(), batches(), or in asyncio
    with `async for` and arecv_batch(). With `on_message(message)` every message is given to it, on the context's
    callback thread or where `queue` is dispatched. If it is a coroutine function, it is awaited for one message after
    the other on the event loop that runs where the receiver is made; no other thread is involved then.
    `on_event(event)` gets everything that is not a message: beginning and end of sessions, losses (ReceiverEvent). It
    may be a coroutine function where messages are taken on an event loop. Events are records of batches as well, unless
    `events` is False. Options of the scope receiver may be given as keywords, or as a mapping in `options`.

    `queue_bytes` bounds what waits for Python, in bytes. When it is full, `on_full` says what happens: "pause" leaves
    TCP sessions unread until half of it is taken, so that their sources feel it, and does the next on other
    transports; "drop_newest" drops what comes; "drop_oldest" drops what has waited longest; "conflate" keeps, full or
    not, at most the newest message of each topic, which takes the place of the one before. What is dropped is lost:
    counted in `queue_stats().dropped` and `counts().lost`, and told of by a BURST_LOSS whose `count` is the number of
    messages, in their place, or before everything else where they were the oldest. What is replaced is no loss
    (`queue_stats().conflated`).

    `replay` says what is wanted of what sources have kept (`retain` of Source), before what they send from now on:
    "all" of it, which is the default, the newest so many messages, or 0 for none. These messages come first, in their
    order, and their `retransmit` is True. A replay that finds the queue full waits at its source, whatever the
    transport, where `on_full` is "pause".

    `channels` are numbers of channels to subscribe to, or a mapping of numbers to callbacks, each of which gets the
    messages of its channel instead of `on_message` (None: not). They hold from the first message on, those of a replay
    included; subscribe_channel() and unsubscribe_channel() change them later. `channel` of a message is its number,
    where the receiver has any. Messages of other channels and those of none come, too, unless the options
    `unrecognized_channel_behavior` and `null_channel_behavior` are "discard".

    `direct` calls back on the thread of the library that receives, without queue and without a change of threads: the
    shortest way, for LBT-SMX above all. The whole context waits for such a callback, its sources may be held up by it,
    and it must not wait for anything of its context; keep it short. Closing anything of the context inside it is an
    InvalidOperation. Messages are copies, free to keep. Such a receiver lives until it or its context is closed,
    referenced or not.

    All methods may be called from any thread, callbacks included. InvalidArgument names an unknown option or a wrong
    value, and what is allowed; it is also what every method raises once the receiver is closed.
    """

    def __init__(
        self,
        ctx: Context,
        topic: str,
        on_message: OnMessage | None = None,
        on_event: OnEvent | None = None,
        queue: EventQueue | None = None,
        *,
        queue_bytes: int = QUEUE_BYTES,
        direct: bool = False,
        events: bool = True,
        on_full: OnFull = "pause",
        replay: Literal["all"] | int | None = None,
        channels: Channels = (),
        options: Mapping[str, object] | None = None,
        **keywords: Unpack[ReceiverOptions],
    ) -> None:
        expect_context("Receiver(ctx, topic)", ctx)
        name_bytes("Receiver(ctx, topic)", "topic", topic)
        self._topic = topic
        self._subscriptions = Subscriptions(f"receiver of {topic}", channels)
        meaning = replay_of(f"receiver of {topic}", replay)
        wanted = with_meaning(f"receiver of {topic}", "replay", meaning, merged(options, keywords))
        self._chosen = sorted_out(("receiver",), wanted)["receiver"]
        super().__init__(f"receiver of {topic}", ctx, on_message, on_event, queue, queue_bytes, direct, events, on_full)

    def _create_receiver(self, ctx: Context, callback: Any, collector: Any) -> Any:
        topic_holder, holder = ffi.new("lbm_topic_t **"), ffi.new("lbm_rcv_t **")
        with Attributes("receiver", self._chosen) as attributes:
            check(lib.lbm_rcv_topic_lookup(topic_holder, ctx._ctx, self._topic.encode(), attributes.pointer))
        beginning = self._beginning()
        check(
            lib.um_rcv_create_on_channels(holder, ctx._ctx, topic_holder[0], callback, collector, ffi.NULL, *beginning)
        )
        return holder[0]

    def _delete_receiver(self) -> int:
        return int(lib.lbm_rcv_delete(self._rcv))

    def _on_channel(self, number: int) -> int:
        return int(lib.lbm_rcv_subscribe_channel(self._rcv, number, ffi.NULL, ffi.NULL))

    def _off_channel(self, number: int) -> int:
        return int(lib.lbm_rcv_unsubscribe_channel(self._rcv, number))

    @property
    def topic(self) -> str:
        """The topic."""
        return self._topic

    def _ready_sources(self) -> int:
        return int(lib.um_rcv_ready(self._rcv))

    def _wait_ready_sources(self, sources: int, wait_ms: int) -> int:
        return int(lib.um_rcv_wait_ready(self._rcv, sources, wait_ms))

    def _facts(self) -> str:
        return counted(check(lib.um_rcv_ready(self._rcv)), "source")

    def _joined(self) -> int:
        return self.counts().sources

    def getopt(self, name: str) -> str:
        """The value in force of the receiver option `name`, as text. InvalidArgument for an unknown one."""
        with self._using():
            return read_option(lib.lbm_rcv_str_getopt, self._rcv, name)

    def setopt(self, name: str, value: object) -> None:
        """Set the option `name`, one that may change while the receiver exists, to `value`.

        InvalidArgument for others.
        """
        _, written = check_option(("receiver",), name, value)
        with self._using():
            check(lib.lbm_rcv_str_setopt(self._rcv, name.encode(), written.encode()))

    def counts(self, source: str | None = None) -> ReceiverCounts:
        """What became of the messages for this receiver, from all sources, or from one that is joined now.

        `lost` includes what was dropped from the full queue to Python; of one source that is known as long as the
        source is among the 1024 that lost something there last. InvalidArgument when there is no such source.
        """
        name = ffi.NULL if source is None else name_bytes("counts()", "source", source)
        with self._using():
            counts = stats.read_counts(
                stats.ReceiverCounts, "um_rcv_stats_t", lambda out: lib.um_rcv_stats(self._rcv, name, out)
            )
        return self._with_dropped(counts, name)

    def stats(self) -> list[ReceiverStats]:
        """One entry for each transport session that brings messages to this receiver."""
        with self._using():
            return stats.read_sessions(
                "lbm_rcv_transport_stats_t",
                stats.receiver_stats,
                lambda count, array: lib.lbm_rcv_retrieve_all_transport_stats(self._rcv, count, array),
            )


class WildcardReceiver(Readiness, Calling):
    """A subscriber of all topics in the context `ctx` whose names match `pattern` (PCRE, see the option pattern_type).

    `on_message`, `on_event`, `queue`, `direct`, `events` and the ways to take messages are those of Receiver, and so
    are threads and errors. `queue_bytes` bounds what waits for Python, in bytes, of all topics together; `on_full` is
    that of Receiver, and so are `replay`, for each source of each topic, and `channels`. Options of the scopes receiver
    and wildcard_receiver may be given as keywords or in `options`; a name that both have means the receiver's.
    """

    def __init__(
        self,
        ctx: Context,
        pattern: str,
        on_message: OnMessage | None = None,
        on_event: OnEvent | None = None,
        queue: EventQueue | None = None,
        *,
        queue_bytes: int = QUEUE_BYTES,
        direct: bool = False,
        events: bool = True,
        on_full: OnFull = "pause",
        replay: Literal["all"] | int | None = None,
        channels: Channels = (),
        options: Mapping[str, object] | None = None,
        **keywords: Unpack[PatternOptions],
    ) -> None:
        expect_context("WildcardReceiver(ctx, pattern)", ctx)
        name_bytes("WildcardReceiver(ctx, pattern)", "pattern", pattern)
        self._pattern = pattern
        self._subscriptions = Subscriptions(f"wildcard receiver of {pattern}", channels)
        meaning = replay_of(f"wildcard receiver of {pattern}", replay)
        wanted = with_meaning(f"wildcard receiver of {pattern}", "replay", meaning, merged(options, keywords))
        self._chosen = sorted_out(("receiver", "wildcard_receiver"), wanted)
        super().__init__(
            f"wildcard receiver of {pattern}", ctx, on_message, on_event, queue, queue_bytes, direct, events, on_full
        )

    def _create_receiver(self, ctx: Context, callback: Any, collector: Any) -> Any:
        holder = ffi.new("lbm_wildcard_rcv_t **")
        with (
            Attributes("receiver", self._chosen["receiver"]) as receivers,
            Attributes("wildcard_receiver", self._chosen["wildcard_receiver"]) as attributes,
        ):
            self._prepare(receivers)
            check(
                lib.um_wildcard_rcv_create_on_channels(
                    holder,
                    ctx._ctx,
                    self._pattern.encode(),
                    receivers.pointer,
                    attributes.pointer,
                    callback,
                    collector,
                    ffi.NULL,
                    *self._beginning(),
                )
            )
        return holder[0]

    def _prepare(self, receivers: Attributes) -> None:
        """For those who have more to say about the receivers that are made for topics."""

    def _delete_receiver(self) -> int:
        return int(lib.lbm_wildcard_rcv_delete(self._rcv))

    def _on_channel(self, number: int) -> int:
        return int(lib.lbm_wildcard_rcv_subscribe_channel(self._rcv, number, ffi.NULL, ffi.NULL))

    def _off_channel(self, number: int) -> int:
        return int(lib.lbm_wildcard_rcv_unsubscribe_channel(self._rcv, number))

    @property
    def pattern(self) -> str:
        """The pattern."""
        return self._pattern

    def _facts(self) -> str:
        if lib.um_py_in_callback(ffi.NULL):  # threads that may wait for this one would have to be asked
            return ""
        stats = ffi.new("um_rcv_stats_t *")
        check(lib.um_wildcard_rcv_stats(self._rcv, stats))
        return counted(int(stats.sources), "source")

    def _joined(self) -> int:
        return self.counts().sources

    def getopt(self, name: str) -> str:
        """The value in force of the wildcard_receiver option `name`, as text. InvalidArgument for an unknown one."""
        with self._using():
            return read_option(lib.lbm_wildcard_rcv_str_getopt, self._rcv, name)

    def setopt(self, name: str, value: object) -> None:
        """Set the wildcard_receiver option `name` to `value`.

        InvalidArgument for every option that must be set when the receiver is made, which in this version are all.
        """
        _, written = check_option(("wildcard_receiver",), name, value)
        with self._using():
            check(lib.lbm_wildcard_rcv_str_setopt(self._rcv, name.encode(), written.encode()))

    def _ready_sources(self) -> int:
        return int(lib.um_wildcard_rcv_ready(self._rcv))

    def _wait_ready_sources(self, sources: int, wait_ms: int) -> int:
        return int(lib.um_wildcard_rcv_wait_ready(self._rcv, sources, wait_ms))

    def stats(self) -> list[ReceiverStats]:
        """One entry for each transport session that brings messages to this receiver, on any of its topics."""
        with self._using():
            return stats.read_sessions(
                "lbm_rcv_transport_stats_t",
                stats.receiver_stats,
                lambda count, array: lib.um_wildcard_rcv_transport_stats(self._rcv, count, array),
            )

    def counts(self) -> ReceiverCounts:
        """What became of the messages on all topics matched so far; `sources` is how many are joined now.

        `lost` includes what was dropped from the full queue to Python.
        """
        with self._using():
            counts = stats.read_counts(
                stats.ReceiverCounts, "um_rcv_stats_t", lambda out: lib.um_wildcard_rcv_stats(self._rcv, out)
            )
        return self._with_dropped(counts, ffi.NULL)
