"""Taking messages from a receiver: one by one, in batches, as Arrow, in asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, overload

from um_cffi._receiving import Receiving, resolve
from um_cffi.arrow import ArrowReader
from um_cffi.batch import Batch, Message, Stream, Walk, event_of, record_dtype
from um_cffi.binding.arguments import whole
from um_cffi.binding.deadline import Deadline
from um_cffi.binding.deferred import asyncio
from um_cffi.binding.lifetime import milliseconds
from um_cffi.errors import InvalidArgument, InvalidOperation
from um_cffi.events import ReceiverEvent

if TYPE_CHECKING:
    import numpy.typing as npt

    from um_cffi.binding.arrow import Extra


class Pulling(Receiving):
    """A receiver whose messages may be taken."""

    # -- one by one --

    @overload
    def recv(self, timeout: None = None) -> Message: ...

    @overload
    def recv(self, timeout: float | None) -> Message | None: ...

    def recv(self, timeout: float | None = None) -> Message | None:
        """The next message, waiting for it; None when `timeout` seconds have passed (None: no bound, 0: do not wait).

        Losses and other events are no messages: they go to `on_event`, in their turn. InvalidArgument when the receiver
        is closed, also while waiting. Any thread; each message is given once. Signals are handled while waiting.
        InvalidOperation when the receiver has a callback.
        """
        message = self._pending()
        return message if message is not None else self._next("recv()", timeout)

    def _next(self, call: str, timeout: float | None) -> Message | None:
        """The next message when it is not simply the next that is pending. Wait for it."""
        self._check_blocking_pull(call)
        deadline, intake = Deadline(timeout), self._intake
        self._check_open()
        while True:
            with self._taking:
                found = intake.fill(self._ahead, deadline.slice())
            message = self._next_pending()
            if message is not None:
                return message
            if self._closed:
                self._check_open()
            if not found and deadline.over():  # events may be followed by messages
                return None

    def _next_pending(self) -> Message | None:
        """The next message that is pending; the events before it are told."""
        while True:
            message = self._intake.message()
            if message is not None:
                return message
            event = self._intake.event()
            if event is None:
                return None
            self._tell(event_of(event))

    def __iter__(self) -> Iterator[Message]:
        """Messages as they come: `for message in receiver`, until the receiver is closed.

        Messages, events, threads and signals as with recv(). Leaving the loop loses nothing: the next one goes on with
        the message after.
        """
        self._check_blocking_pull("a loop over messages")
        self._check_open()
        return Walk(self._intake, self._next_of_loop)

    def _next_of_loop(self) -> Message | None:
        try:
            return self._next("a loop over messages", None)
        except InvalidArgument:
            if self._closed and not self._inherited:
                return None
            raise

    def fileno(self) -> int:
        """A descriptor for select, selectors, trio, Qt and other event loops: readable while recv() need not wait.

        Readable as long as messages or events are there: call `recv(timeout=0)` until it gives None, or once for each
        time it is readable. It gives None for a readable descriptor when only events were there (`on_event` has them
        then), or another thread was faster. The descriptor is the same with every call and belongs to the receiver:
        only wait for it, and take it out of the event loop before the receiver is closed, whose descriptor may be
        given to something else afterwards. InvalidArgument when the receiver is closed, InvalidOperation when it has a
        callback.
        """
        self._check_pull("fileno()")
        with self._using():
            descriptor = self._descriptor()
            self._intake.watch()
        return descriptor

    # -- batches --

    def recv_batch(
        self, *, max_messages: int | None = None, timeout: float | None = None, events: bool | None = None
    ) -> Batch | None:
        """Take what has arrived: up to `max_messages` records (None: all), waiting for the first one.

        None after `timeout` seconds (None: wait without bound, 0: not at all) or when the receiver is closed meanwhile.
        The batch is the fast way to get many messages: nothing is copied or made for each of them. Losses and ends of
        sessions are records too, and go to `on_event` as well if given; with `events=False` (None: as the receiver was
        made) they go to `on_event` only, and a batch ends where one of them was. Signals are handled while waiting; any
        thread, one at a time gets a batch. InvalidOperation when the receiver has a callback.
        """
        self._check_blocking_pull("recv_batch()")
        most, with_events = _most(max_messages), self._events if events is None else events
        record_dtype()  # numpy is read by the first call, before it waits, not when the first message is there
        deadline = Deadline(timeout)
        self._check_open()
        while True:
            batch = self._take(most, deadline.slice(), with_events)
            if batch is not None:
                for told in _events_of(batch) if self._on_event is not None and with_events else ():
                    self._tell(told)
                return batch
            if not with_events and (event := self._intake.event()) is not None:
                self._tell(event_of(event))  # and look whether messages follow
                continue
            if self._closed or deadline.over():
                return None

    def _take(self, most: int, wait_ms: int, events: bool) -> Batch | None:
        """A batch of what is pending, else of what comes; None: neither in time, or an unwanted event is next."""
        with self._taking:
            if self._inherited:
                self._check_open()
            memory = self._intake.part(most, events)
            if memory is None and events:
                memory = self._intake.batch(most, wait_ms)
            elif memory is None and not self._intake.pending and self._intake.fill(most, wait_ms):
                memory = self._intake.part(most, False)
        return Batch(memory) if memory is not None else None

    def batches(
        self, *, max_messages: int | None = None, timeout: float | None = None, events: bool | None = None
    ) -> Iterator[Batch]:
        """Batches as they come, of up to `max_messages` records each if given, until the receiver is closed.

        With `timeout`, an empty batch (false, of length 0) whenever nothing has come for so many seconds, so that a
        loop gets to look at other things. `events` and errors as of recv_batch().
        """
        while not self._closed:
            batch = self.recv_batch(max_messages=max_messages, timeout=timeout, events=events)
            if batch is not None:
                yield batch
            elif not self._closed:
                yield Batch(self._intake.empty())

    def arrow_reader(
        self,
        dtype: npt.DTypeLike | None = None,
        timeout: float | None = None,
        *,
        extra: Iterable[Extra] = (),
    ) -> ArrowReader:
        """Messages as they come as an Arrow stream, for pyarrow, polars, DuckDB and everything that reads such.

        Columns are the fields of `dtype` (numpy's; `value` if it has none), or `payload` without a dtype, and then
        `topic`, `source` and `timestamp` (of nanoseconds in UTC), and the `extra` ones, as of Batch.to_arrow(). Events
        have no rows and go to `on_event` if given.
        Payloads are not copied, fields are, into columns. The stream ends when the receiver is closed, or no message
        has come for `timeout` seconds (None: no bound). InvalidArgument when there is no Arrow type for a field;
        the stream fails with a message that does not have the size of the dtype. InvalidOperation when the receiver
        has a callback.
        """
        self._check_pull("arrow_reader()")
        self._check_open()
        milliseconds(timeout)
        return ArrowReader(self, dtype, timeout, extra)  # type: ignore[arg-type]

    # -- asyncio --

    async def arecv_batch(
        self, *, max_messages: int | None = None, timeout: float | None = None, events: bool | None = None
    ) -> Batch | None:
        """Take up to `max_messages` records as recv_batch() does, for asyncio: waits without blocking the event loop.

        None after `timeout` seconds (None: wait without bound). `events` as of recv_batch(). No other thread is
        involved. InvalidOperation when the receiver has a callback or another task is waiting. Cancelled while waiting:
        nothing is lost, the messages stay for the next call.
        """
        self._check_pull("arecv_batch()")
        most, with_events = _most(max_messages), self._events if events is None else events
        record_dtype()  # numpy is read by the first call, before it waits, not when the first message is there
        deadline = Deadline(timeout)
        while True:
            batch = self._take(most, 0, with_events)
            if batch is not None:
                for told in _events_of(batch) if self._on_event is not None and with_events else ():
                    await self._tell_awaiting(told)
                return batch
            if not with_events and (event := self._intake.event()) is not None:
                await self._tell_awaiting(event_of(event))  # and look whether messages follow
                continue
            if self._closed or deadline.over():
                return None
            await self._readable(deadline.seconds())

    async def _readable(self, timeout: float | None) -> None:
        """Until messages wait, the receiver is closed, or the time has passed."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        if self._waiters:
            raise InvalidOperation(f"the {self._name} is awaited by another task already")
        with self._guard:
            if self._closed:
                return
            watched = self._watched_descriptor()
        timer = loop.call_later(timeout, resolve, ready) if timeout is not None else None
        loop.add_reader(watched.number, resolve, ready)
        self._waiters.add(ready)
        try:
            if not self._closed:  # otherwise who closes may have looked for waiters before this one was there
                await ready
        finally:
            self._waiters.discard(ready)
            loop.remove_reader(watched.number)
            if timer is not None:
                timer.cancel()

    def __aiter__(self) -> AsyncIterator[Message]:
        """Messages as they come: `async for message in receiver`, until the receiver is closed.

        No thread is involved: the event loop watches a descriptor, and messages are handed out of batches. Leaving the
        loop, or being cancelled in it, loses nothing: the next loop goes on with the message after. While the body is
        slow, messages wait in the bounded queue. The event loop gets its turn at least every 1024 messages. Events go
        to `on_event`, on the event loop; a coroutine function is awaited. One task at a time.
        """
        self._check_pull("async for")
        self._check_open()
        return Stream(self._intake, self._next_message)

    async def _next_message(self) -> Message:
        """The next message for `async for` when it is not simply the next that is pending."""
        intake = self._intake
        while True:
            message = intake.message()
            if message is not None:
                return message
            event = intake.event()
            if event is not None:
                await self._tell_awaiting(event_of(event))
            elif self._fill():
                await asyncio.sleep(0)
            elif self._closed:
                raise StopAsyncIteration
            else:
                await self._readable(None)

    def _fill(self) -> bool:
        """For `async for`: whether messages or events are pending now."""
        with self._taking:
            if self._inherited:
                self._check_open()
            return self._intake.fill(self._ahead, 0)


def _most(max_messages: int | None) -> int:
    if max_messages is not None and whole("max_messages", max_messages) < 1:
        raise InvalidArgument(f"max_messages {max_messages}: must be None, or 1 or more")
    return max_messages or 0


def _events_of(batch: Batch) -> Iterator[ReceiverEvent]:
    return (event_of(batch[at]) for at in batch.events())
