"""The book of hot-failover numbers: where each topic goes on, and which numbers a batch has.

A folder (option `stateLocation`) that the driver, and executors that publish themselves, see. All of it is one file,
replaced by an atomic rename and forced to the disk, and changed under a lock of the kernel that ends with its holder.
A batch gets its numbers before anything of it is published, and the same ones whenever it is repeated: it is known by
query and batch number, never by a time.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from um_cffi.errors import InvalidArgument, InvalidOperation

STATE, LOCK, PUBLISHING = "numbers.json", "numbers.lock", "publishing.lock"
STAGING = "staging"
_VERSION = 1
_FINISHED_MAX = 1024  # writes without a name that are remembered, for attempts of theirs that come late
_LAST = (1 << 64) - 1

log = logging.getLogger("um_cffi.spark")


@dataclass(frozen=True)
class Batch:
    """What is published together, whoever tries it and however often."""

    query: str
    """Id of a streaming query, `queryId`, or one made for a single write."""
    number: int
    """Of the micro-batch; 0 for a batch write."""
    named: bool = True
    """Whether somebody may repeat it."""

    def __str__(self) -> str:
        return f"batch {self.number} of query {self.query}" if self.named else f"write {self.query}"


@dataclass
class Begun:
    """What the book says of a batch: the numbers of its topics, and the staged files that it is made of."""

    first: dict[str, int]
    counts: dict[str, int]
    files: list[tuple[str, int]] = field(default_factory=list)
    """Names within the folder, with sizes in bytes, in their order."""
    again: bool = False
    """It was begun before."""
    done: bool = False
    """It has been published as a whole."""


class NumberBook:
    """The numbers in one folder. Any process, any thread; each call reads what is there now."""

    def __init__(self, location: str) -> None:
        self.folder = Path(location)

    def prepare(self) -> None:
        """Make the folder, and see that it can be written. InvalidArgument says why it cannot."""
        try:
            (self.folder / STAGING).mkdir(parents=True, exist_ok=True)
            with self._locked(LOCK):
                self._write(self._read())
        except OSError as error:
            raise InvalidArgument(
                f"option stateLocation {self.folder}: {error.strerror or error}; the driver must be able to write there"
            ) from None

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Held while a driver publishes: batches of one book go out one behind the other, in the order of numbers."""
        with self._locked(PUBLISHING):
            yield

    def begin(self, batch: Batch, counts: Mapping[str, int], files: Sequence[tuple[str, int]] = ()) -> Begun:
        """The numbers of a batch for so many rows of each topic, durable when this returns.

        One that was begun before has those that it had then. Executors begin their parts of a batch one by one.
        InvalidOperation where that cannot be: another number of rows, an older batch, numbers of another query's batch
        that was never finished.
        """
        with self._locked(LOCK):
            state = self._read()
            entry = state["queries"].get(batch.query)
            if entry is not None and entry["batch"] == batch.number:
                found = self._again(batch, entry, counts)
                if found is not None:
                    return found
            else:
                entry = self._replaced(batch, entry)
                state["queries"][batch.query] = entry
            self._refuse_unfinished(batch, state, counts)
            for topic, count in counts.items():
                first = state["topics"].get(topic, 0)
                if first + count > _LAST:
                    raise InvalidOperation(f"topic {topic}: its numbers end at {_LAST}; use another topic")
                entry["topics"][topic] = [first, count]
                state["topics"][topic] = first + count
            entry["files"] = [list(file) for file in files]
            self._write(state)
            return self._begun(entry, counts)

    def finish(self, batch: Batch) -> None:
        """The batch has been published as a whole. Its numbers stay, for the case that it is repeated all the same."""
        with self._locked(LOCK):
            state = self._read()
            entry = state["queries"].setdefault(batch.query, _entry(batch))
            if entry["batch"] != batch.number:
                entry = state["queries"][batch.query] = _entry(batch)
            entry["done"] = True
            entry["files"] = []
            self._forget(state)
            self._write(state)

    def give_up(self, batch: Batch, published: Mapping[str, int]) -> None:
        """Nobody repeats the batch, of which so many rows of each topic went out: its other numbers are free again,
        those of topics that nothing was begun of behind them."""
        with self._locked(LOCK):
            state = self._read()
            entry = state["queries"].get(batch.query)
            if entry is None or entry["batch"] != batch.number:
                return
            for topic, (first, count) in entry["topics"].items():
                if state["topics"].get(topic) == first + count:
                    state["topics"][topic] = first + min(count, published.get(topic, count))
            entry["done"], entry["topics"], entry["files"] = True, {}, []
            self._forget(state)
            self._write(state)

    def find(self, batch: Batch) -> Begun | None:
        """What the book says of a batch; None: it was not begun."""
        entry = self._read()["queries"].get(batch.query)
        if entry is None or entry["batch"] != batch.number:
            return None
        return self._begun(entry, {topic: count for topic, (_, count) in entry["topics"].items()}, again=True)

    def next_number(self, topic: str) -> int:
        """The number that the next row of a topic gets."""
        return int(self._read()["topics"].get(topic, 0))

    # -- what a batch is told --

    def _again(self, batch: Batch, entry: dict[str, Any], counts: Mapping[str, int]) -> Begun | None:
        """Of a batch that was begun; None: not these topics of it."""
        known = {topic: count for topic, (_, count) in entry["topics"].items()}
        if entry["done"] or entry["files"]:
            return self._begun(entry, known, again=True)
        fresh = [topic for topic in counts if topic not in known]
        if fresh and len(fresh) == len(counts):
            return None
        for topic, count in counts.items():
            if known.get(topic) != count:
                raise InvalidOperation(changed(batch, topic, known.get(topic, 0), count))
        return self._begun(entry, counts, again=True)

    def _replaced(self, batch: Batch, entry: dict[str, Any] | None) -> dict[str, Any]:
        """The new entry of a query whose last batch was another one."""
        if entry is not None and entry["batch"] > batch.number:
            raise InvalidOperation(
                f"{batch}: stateLocation {self.folder} knows batch {entry['batch']} of it already; the checkpoint is "
                "an older one: give each copy of a checkpoint a stateLocation and topics of its own"
            )
        if entry is not None and not entry["done"] and entry["topics"]:
            raise InvalidOperation(
                f"{batch}: batch {entry['batch']} was begun and never finished; restart the query from the "
                "checkpoint that has that batch, so that it is repeated"
            )
        return _entry(batch)

    def _refuse_unfinished(self, batch: Batch, state: dict[str, Any], counts: Mapping[str, int]) -> None:
        for query, other in state["queries"].items():
            if query == batch.query or other["done"] or not other["named"]:
                continue
            for topic in counts:
                if topic in other["topics"]:
                    first, count = other["topics"][topic]
                    raise InvalidOperation(
                        f"{batch}: topic {topic} has numbers {first} to {first + count - 1} of batch {other['batch']} "
                        f"of query {query}, which is not finished: let that query finish it first, since receivers "
                        "drop what comes behind larger numbers"
                    )

    @staticmethod
    def _begun(entry: dict[str, Any], counts: Mapping[str, int], again: bool = False) -> Begun:
        topics = entry["topics"]
        first = {topic: int(topics[topic][0]) for topic in counts if topic in topics}
        files = [(str(name), int(size)) for name, size in entry["files"]]
        return Begun(first, dict(counts), files, again, bool(entry["done"]))

    @staticmethod
    def _forget(state: dict[str, Any]) -> None:
        """Writes that nobody can repeat are remembered for a while only."""
        over = [query for query, entry in state["queries"].items() if not entry["named"] and entry["done"]]
        for query in over[:-_FINISHED_MAX]:
            del state["queries"][query]

    # -- the file --

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        descriptor = os.open(self.folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _read(self) -> dict[str, Any]:
        path = self.folder / STATE
        try:
            text = path.read_text()
        except FileNotFoundError:
            return {"version": _VERSION, "topics": {}, "queries": {}}
        try:
            state = json.loads(text)
            if (
                state["version"] == _VERSION
                and isinstance(state["topics"], dict)
                and isinstance(state["queries"], dict)
            ):
                return dict(state)
        except (ValueError, KeyError, TypeError):
            pass
        raise InvalidOperation(
            f"{path}: not what this version writes; put it back from a copy, or begin with another stateLocation and "
            "other topics, since receivers drop numbers that they have had"
        )

    def _write(self, state: dict[str, Any]) -> None:
        path = self.folder / STATE
        draft = path.with_suffix(".new")
        try:
            with draft.open("w") as file:
                json.dump(state, file, separators=(",", ":"))
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, path)
            sync_folder(self.folder)
        except OSError as error:
            raise OSError(error.errno, f"stateLocation {self.folder}: {error.strerror}") from error


def changed(batch: Batch, topic: str, before: int, now: int) -> str:
    """The words for a batch that is repeated and is not the same."""
    return (
        f"{batch}: it was begun with {before} rows for topic {topic}, and now has {now}: what a query reads must be "
        "the same when it is repeated"
    )


def sync_folder(folder: Path) -> None:
    """Names in a folder outlast a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _entry(batch: Batch) -> dict[str, Any]:
    return {"batch": batch.number, "named": batch.named, "done": False, "topics": {}, "files": []}
