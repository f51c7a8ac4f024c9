"""Publishing of staged rows: sources of hot failover that stay open between the batches of a process.

Spark uses its Python processes again, so that receivers find the sources of the last batch still there. One thread.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from um_cffi import Context, HFSource
from um_cffi import config as config_files
from um_cffi.binding.attributes import Attributes
from um_cffi.errors import InvalidOperation, TimedOut, UmError
from um_cffi.spark import _extras, _staging
from um_cffi.spark._sink_options import WriteOptions
from um_cffi.stats import LbtrmSourceStats, LbtruSourceStats, TcpSourceStats

_BITS: Final = 64
_SOURCES_MAX = 256  # kept open between batches
_SESSIONS = {"transport_tcp_maximum_ports": ("10", 256), "transport_lbtru_maximum_ports": ("5", 256)}
_LOOK = 0.01  # seconds between looks whether all has gone out
_QUIET = 1.0  # seconds without a NAK after which repairs are over


class Publisher:
    """A context with sources, of one configuration."""

    def __init__(self, options: WriteOptions) -> None:
        self._context = _context(options)
        self._sources: dict[str, HFSource] = {}
        self._unseen: set[str] = set()  # of sources whose receivers nobody can count, since they were made

    def close(self) -> None:
        """Close everything."""
        self._context.close()

    def publish(
        self, files: Iterable[Path], first: dict[str, int], options: WriteOptions, sent: dict[str, int]
    ) -> None:
        """Send the rows of files in their order, each topic's from its first number on. How many have gone out is told
        in `sent`, also when this fails: TimedOut without receivers, or when they leave no room. What does not belong
        to a topic of `first` is not sent."""
        self._meet(first, options)
        for path in files:
            for topic, rows in _staging.parts(path):
                if topic not in first:
                    continue
                number = first[topic] + sent.setdefault(topic, 0)
                patience = options.patience or None
                try:
                    if options.extras:
                        sent[topic] += _extras.send_with(self._sources[topic], rows, number, patience)
                    else:
                        sent[topic] += self._sources[topic].send_many(rows, numbers=number, timeout=patience)
                except BaseException as error:
                    sent[topic] += getattr(error, "sent", 0)
                    raise
        for topic in first:
            self._sources[topic].flush()
        self._see_off([self._sources[topic] for topic in first], options.patience)
        self._forget()

    def _meet(self, topics: Iterable[str], options: WriteOptions) -> None:
        """Make sources, and wait until they have receivers."""
        for topic in topics:
            if topic not in self._sources:
                self._sources[topic] = HFSource(self._context, topic, bits=_BITS)
                self._unseen.add(topic)
            else:
                self._sources[topic] = self._sources.pop(topic)  # the last one used
        if options.patience == 0:
            return
        end = time.monotonic() + options.patience
        blind = False
        for topic in topics:
            source = self._sources[topic]
            if source.getopt("transport") == "lbtrm":
                blind = blind or topic in self._unseen
                continue
            try:
                source.wait_receivers(options.receivers, max(0.0, end - time.monotonic()))
            except TimedOut:
                raise TimedOut(
                    f"topic {topic}: {source.receivers()} of {options.receivers} receivers after "
                    f"{options.patience:g} s (option waitForReceivers; minReceivers); start them, or see that they can "
                    "resolve the topic"
                ) from None
        if blind:  # nobody can count them: they have had the time that there is
            time.sleep(max(0.0, end - time.monotonic()))
        self._unseen.clear()

    @staticmethod
    def _see_off(sources: list[HFSource], patience: float) -> None:
        """Until the kernel has what was sent over TCP, and repairs are over where they are asked for."""
        moved = time.monotonic()
        last: Any = None
        while True:
            stats = [source.stats() for source in sources]
            waiting = sum(each.bytes_buffered for each in stats if isinstance(each, TcpSourceStats))
            naks = sum(each.naks_rcved for each in stats if isinstance(each, (LbtrmSourceStats, LbtruSourceStats)))
            repairs = any(isinstance(each, (LbtrmSourceStats, LbtruSourceStats)) for each in stats)
            now = time.monotonic()
            if (waiting, naks) != last:
                last, moved = (waiting, naks), now
            if not waiting and (not repairs or now - moved >= _QUIET):
                return
            if waiting and patience and now - moved >= patience:
                raise TimedOut(
                    f"{waiting} bytes still wait for receivers that read nothing for {patience:g} s (waitForReceivers)"
                )
            time.sleep(_LOOK)

    def _forget(self) -> None:
        """Close the sources that were not used for longest."""
        for topic in list(self._sources)[:-_SOURCES_MAX]:
            self._sources.pop(topic).close()


_open: tuple[int, object, Publisher] | None = None  # process, configuration, and what was opened with it


def publisher(options: WriteOptions) -> Publisher:
    """The publisher of this process for a configuration. One at a time is kept. UmError when it cannot be opened."""
    global _open
    wanted = options.config, options.config_text
    if _open is not None and _open[0] == os.getpid():
        if _open[1] == wanted:
            return _open[2]
        _open[2].close()
    _open = None
    made = Publisher(options)
    _open = os.getpid(), wanted, made
    return made


def discard() -> None:
    """Close the publisher of this process, after something went wrong with it."""
    global _open
    if _open is not None and _open[0] == os.getpid():
        _open[2].close()
    _open = None


def _context(options: WriteOptions) -> Context:
    """A context of the configuration file as the driver has read it."""
    if options.config is not None:
        try:
            _load(options.config, options.config_text)
        except UmError as error:
            raise InvalidOperation(f"option config {options.config}: {error}") from None
    with Attributes("context", {}) as attributes:  # a session for each topic, so that its receivers can be counted
        sessions = {name: many for name, (few, many) in _SESSIONS.items() if attributes.get(name) == few}
    return Context(options=sessions)


def _load(path: str, text: bytes) -> None:
    try:
        same = Path(path).read_bytes() == text
    except OSError:
        same = False  # executors need not see it
    if same:
        config_files.load(path)
        return
    with tempfile.NamedTemporaryFile(suffix=Path(path).suffix) as copy:
        copy.write(text)
        copy.flush()
        config_files.load(copy.name)
