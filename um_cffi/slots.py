"""Sources of a fixed layout over smart sources: the lowest latency of sending."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import channel_number, dtype_of, expect_context, name_bytes, shown
from um_cffi.binding.attributes import Attributes, merged, sorted_out
from um_cffi.binding.deferred import asyncio, np, stats
from um_cffi.binding.lifetime import Part, counted
from um_cffi.errors import InvalidArgument, check, raise_last
from um_cffi.requests import Request, Way, make_request

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Unpack

    from um_cffi.binding.option_types import SourceOptions
    from um_cffi.context import Context
    from um_cffi.stats import SourceStats

_LENGTH = "smart_src_max_message_length"


class SlotSource(Part):
    """A publisher of one topic in the context `ctx` whose messages are elements of type `dtype`: a smart source.

    `slots` is a numpy array over buffers that are there before the first message (`smart_src_user_buffer_count` of
    them, 32 by default). Write into an element, then send(): nothing is allocated for it, nothing waits for a lock, and
    it goes out at once. A slot may be written again as soon as send() has returned.

    What it does not have: transports other than LBT-RM and LBT-RU (NotSupported), messages of another size, batching, a
    data rate limit, events of receivers that come and go, numbers of hot failover. Properties are numbers alone, see
    send(). It does not count its receivers: ask them (wait_ready(), wait_session()). Its transport session
    is one of smart sources only; the sources of a session are meant for one thread, others wait for each other. Options
    of the scope source may be given as keywords, or as a mapping in `options`; InvalidArgument names an unknown option
    or a wrong value, a dtype with Python objects or without bytes, and is also what every method raises once it is
    closed.

    Arrays made of `slots` keep their memory: they may be read and written after the source is closed, and nothing
    comes of it.
    """

    def __init__(
        self,
        ctx: Context,
        topic: str,
        dtype: npt.DTypeLike,
        *,
        options: Mapping[str, object] | None = None,
        **keywords: Unpack[SourceOptions],
    ) -> None:
        expect_context("SlotSource(ctx, topic, dtype)", ctx)
        named = name_bytes("SlotSource(ctx, topic, dtype)", "topic", topic)
        kind = dtype_of("SlotSource(ctx, topic, dtype)", dtype)
        if kind.hasobject or kind.itemsize == 0:
            raise InvalidArgument(f"slots of the type {kind}: must have bytes, and no Python objects")
        wanted = dict(merged(options, keywords))
        wanted.setdefault(_LENGTH, kind.itemsize)
        chosen = sorted_out(("source",), wanted)["source"]
        super().__init__(f"slot source of {topic}")
        self._ctx, self._topic, self._dtype = ctx, topic, kind
        self._number_sent = ffi.new("uint32_t *")  # guard: of the last message that was to have its number told
        self._ssrc: Any = None
        self._info = ffi.new("lbm_ssrc_send_ex_info_t *")  # of send(), under the guard, and so what it points to
        self._names: tuple[str, ...] = ()
        self._keys: list[Any] = []
        self._key_list: Any = None
        self._values: Any = ffi.new("int32_t[]", 0)
        try:
            self._create(ctx, named, chosen)
        except BaseException:
            self._closed = True
            if self._ssrc is not None:
                lib.lbm_ssrc_delete(self._ssrc)
            raise

    def _create(self, ctx: Context, topic: bytes, chosen: Mapping[str, str]) -> None:
        holder, block = ffi.new("lbm_ssrc_t **"), ffi.new("um_py_block_t **")
        with ctx._using():
            with Attributes("source", chosen) as attributes:
                check(lib.um_py_slots_create(holder, block, ctx._ctx, topic, attributes.pointer, self._number_sent))
            self._ssrc = holder[0]
            memory = ffi.gc(ffi.cast("char *", block[0]), lib.um_py_block_unref)
            self._buffers = self._take_all()
            self._slots = self._array(memory)
            ctx._adopt(self)

    def _take_all(self) -> list[Any]:
        """Every buffer of the smart source, in the order of their addresses."""
        space, buffer = ffi.new("int *"), ffi.new("char **")
        check(lib.lbm_ssrc_get_available_data_space(self._ssrc, space))
        if space[0] < self._dtype.itemsize:
            raise InvalidArgument(
                f"slots of the type {self._dtype}: {self._dtype.itemsize} bytes, and a buffer has {space[0]}: "
                f"{_LENGTH}, or the datagram size of the transport, is less"
            )
        found = []
        while lib.lbm_ssrc_buff_get(self._ssrc, buffer, 0) == 0:
            found.append(buffer[0])
        if lib.lbm_errnum() != lib.LBM_ENOMEM:
            raise_last()
        return sorted(found, key=lambda each: int(ffi.cast("uintptr_t", each)))

    def _array(self, memory: Any) -> npt.NDArray[Any]:
        """An array over the buffers, which keeps their memory."""
        kind, base = self._dtype, int(ffi.cast("uintptr_t", memory))
        places = [int(ffi.cast("uintptr_t", each)) for each in self._buffers]
        stride = places[1] - places[0] if len(places) > 1 else kind.itemsize
        inner: tuple[int, ...] = np.empty(kind.shape, kind.base).strides
        whole = np.frombuffer(ffi.buffer(memory, places[-1] + kind.itemsize - base), np.uint8)
        return np.ndarray((len(places), *kind.shape), kind.base, whole, places[0] - base, (stride, *inner))

    def send(self, at: int = 0, *, channel: int | None = None, properties: Mapping[str, int] | None = None) -> None:
        """Send the slot `at` as a message, now.

        `channel` is the number of a channel: the source has the option smart_src_enable_spectrum_channel 1.
        `properties` are named numbers of 32 bits, with names of 1 to 7 ASCII characters, at most as many as the option
        smart_src_message_property_int_count says. A source with both options sends both or neither. Waits while the
        socket is full, as long as the kernel needs. InvalidArgument when there is no such slot, when the source cannot
        send these, or is closed.
        """
        if self._inherited or self._closed:
            self._check_open()
        buffer = self._buffer("send()", at)
        with self._guard:
            if self._closed:
                self._check_open()
            info = ffi.NULL if channel is None and properties is None else self._written(channel, properties)
            if lib.lbm_ssrc_send_ex(self._ssrc, buffer, self._dtype.itemsize, 0, info) != 0:
                raise_last()

    def send_numbered(
        self, at: int = 0, *, channel: int | None = None, properties: Mapping[str, int] | None = None
    ) -> int:
        """Send the slot `at` as send() does, and tell the sequence number under which receivers get it.

        `channel`, `properties` and errors are those of send().
        """
        self._check_open()
        buffer = self._buffer("send_numbered()", at)
        with self._guard:
            self._check_open()
            info = self._written(channel, properties)
            info.flags |= lib.LBM_SSRC_SEND_EX_FLAG_SEQUENCE_NUMBER_INFO
            check(lib.lbm_ssrc_send_ex(self._ssrc, buffer, self._dtype.itemsize, 0, info))
            return int(self._number_sent[0])

    def request(
        self,
        at: int = 0,
        timeout: float | None = 5.0,
        *,
        responses: int | None = None,
        channel: int | None = None,
        properties: Mapping[str, int] | None = None,
    ) -> Request:
        """Ask, with the slot `at`, who receives the topic: it is sent, as it is then, when the Request is awaited or
        iterated.

        The Request, `timeout` in seconds and `responses` are as of Context.request(), `channel` and `properties` those
        of send(). InvalidArgument as of send(). A context with the option request_tcp_bind_request_port 0 gets no
        responses.
        """
        self._check_open()
        way = _FromSlot(self, self._buffer("request()", at), channel, properties)
        return make_request(self._ctx, way, b"", timeout, responses)

    def _request(self, inbox: Any, number: int, way: _FromSlot) -> Any:
        with self._guard:
            self._check_open()
            plain = way.channel is None and way.properties is None
            info = ffi.NULL if plain else self._written(way.channel, way.properties)
            return lib.um_py_slot_request(self._ssrc, inbox, number, way.buffer, self._dtype.itemsize, info)

    def _buffer(self, call: str, at: int) -> Any:
        try:
            return self._buffers[at]
        except (IndexError, TypeError):
            raise InvalidArgument(
                f"{call} of the {self._name}: slot {shown(at)}: must be a whole number below {len(self._buffers)}"
            ) from None

    def _written(self, channel: int | None, properties: Mapping[str, int] | None) -> Any:
        """The guard is held. What is told to the library beside the slot; it writes it into the slot anew."""
        info = self._info
        info.flags = lib.LBM_SSRC_SEND_EX_FLAG_REBUILD_BUFFER
        if channel is not None:
            info.channel = channel_number(self._name, channel)
            info.flags |= lib.LBM_SSRC_SEND_EX_FLAG_CHANNEL
        if properties is not None:
            names = tuple(properties)
            if names != self._names:
                self._keys = [
                    ffi.new("char[]", name_bytes(f"send() of the {self._name}", "name", name)) for name in names
                ]
                self._key_list = info.mprop_int_keys = ffi.new("char *[]", self._keys)
                self._values = info.mprop_int_vals = ffi.new("int32_t[]", len(names))
                info.mprop_int_cnt = len(names)
                self._names = names
            try:
                self._values[0 : len(names)] = list(properties.values())
            except (TypeError, OverflowError) as error:
                raise InvalidArgument(f"send() of the {self._name}: properties {shown(properties)}: {error}") from None
            info.flags |= lib.LBM_SSRC_SEND_EX_FLAG_PROPERTIES
        return info

    @property
    def slots(self) -> npt.NDArray[Any]:
        """The slots, a writable array, always the same one: element `at` is what send(at) sends."""
        return self._slots

    @property
    def context(self) -> Context:
        """The context the source was made in."""
        return self._ctx

    @property
    def topic(self) -> str:
        """The topic."""
        return self._topic

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its messages."""
        return self._dtype

    def __len__(self) -> int:
        """Number of slots."""
        return len(self._buffers)

    def stats(self) -> SourceStats:
        """Statistics of the transport session that carries the topic; the class depends on the transport."""
        out = ffi.new("lbm_src_transport_stats_t *")
        with self._using():
            check(lib.lbm_ssrc_retrieve_transport_stats(self._ssrc, out))
        return stats.source_stats(out)

    def _facts(self) -> str:
        return counted(len(self._buffers), "slot")

    def _close(self, patience: float | None) -> None:
        self._give_up()
        self._ctx._release(self)

    def _delete(self) -> None:
        with self._guard:  # until the send that is in the library has returned; others find the source closed
            pass
        check(lib.lbm_ssrc_delete(self._ssrc))


class _FromSlot(Way):
    """A request that lies in a slot."""

    def __init__(
        self, source: SlotSource, buffer: Any, channel: int | None, properties: Mapping[str, int] | None
    ) -> None:
        self.name = f"on {source.topic!r}"
        self.buffer, self.channel, self.properties = buffer, channel, properties
        self._source = source

    def prepare(self, data: Any) -> Any:
        return data  # it lies in the slot

    def send(self, inbox: Any, number: int, payload: Any, wait_ms: int) -> Any:
        return self._source._request(inbox, number, self)

    async def room(self) -> None:
        await asyncio.sleep(0)  # the kernel alone is waited for, in send()
