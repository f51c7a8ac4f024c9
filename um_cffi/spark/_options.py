"""Options of reading: names and meanings of Spark's Kafka source, checked on the driver.

A text of each says option, value and remedy. Immutable, and sent to executors.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Union

from um_cffi.errors import InvalidArgument

EARLIEST, LATEST = "earliest", "latest"
_EARLIEST_NUMBER, _LATEST_NUMBER = -2, -1  # of the Kafka source's JSON

Offsets = dict[str, dict[str, dict[str, int]]]
"""Next sequence numbers by topic, source and session."""
Place = Union[str, Offsets]

NAMES = (
    "recording",
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "minPartitions",
    "failOnDataLoss",
    "includeProperties",
    "includeLosses",
    "definition",
    "consumer",
)
_CHOICES = ("subscribe", "subscribePattern", "assign")
_KNOWN = {name.lower(): name for name in NAMES}
_SPARK = ("path", "paths", "schema", "mergeschema")  # what Spark may add
_WRITING = ("topic", "config", "partitiontopics", "statelocation", "queryid", "waitforreceivers", "checkpointlocation")


@dataclass(frozen=True)
class ReadOptions:
    """What is to be read, and how."""

    recording: str
    """Folder, or URL of a file system."""
    topics: tuple[str, ...] | None = None
    """`subscribe`."""
    pattern: str | None = None
    """`subscribePattern`: the whole name of a topic has to match."""
    assigned: tuple[tuple[str, str], ...] | None = None
    """`assign`: pairs of topic and source."""
    starting: Place = EARLIEST
    ending: Place = LATEST
    starting_ns: int | None = None
    """`startingTimestamp`, as nanoseconds since 1970; outranks `starting`."""
    max_rows: int | None = None
    max_bytes: int | None = None
    min_partitions: int | None = None
    fail_on_data_loss: bool = True
    properties: bool = False
    losses: bool = False
    definition: str | None = None
    consumer: str | None = None

    def wants(self, topic: str, source: str) -> bool:
        """Whether messages of a source are to be read."""
        if self.topics is not None:
            return topic in self.topics
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return self.assigned is None or (topic, source) in self.assigned

    def check_recording(self) -> None:
        """InvalidArgument when there is no recording; OSError when it cannot be looked at."""
        from um_cffi.spark._store import Store

        Store(self.recording).state()


def read_options(given: Mapping[str, str], streaming: bool = False) -> ReadOptions:
    """The options of a reader. InvalidArgument. `streaming` rules what is the default, and what has no meaning."""
    values = _named(given)
    if "recording" not in values:
        raise InvalidArgument('option recording is missing: .option("recording", FOLDER), the folder of um record')
    chosen = [name for name in _CHOICES if name in values]
    if len(chosen) > 1:
        raise InvalidArgument(f"options {' and '.join(chosen)} exclude each other: give one of them")
    if streaming and "endingOffsets" in values:
        raise InvalidArgument(f"option endingOffsets {values['endingOffsets']}: a stream has no end; leave it out")
    return ReadOptions(
        recording=_text("recording", values["recording"]),
        topics=_topics(values.get("subscribe")),
        pattern=_pattern(values.get("subscribePattern")),
        assigned=_assigned(values.get("assign")),
        starting=_place("startingOffsets", values.get("startingOffsets"), LATEST if streaming else EARLIEST),
        ending=_place("endingOffsets", values.get("endingOffsets"), LATEST),
        starting_ns=_time("startingTimestamp", values.get("startingTimestamp")),
        max_rows=_positive("maxOffsetsPerTrigger", values.get("maxOffsetsPerTrigger")),
        max_bytes=_positive("maxBytesPerTrigger", values.get("maxBytesPerTrigger")),
        min_partitions=_positive("minPartitions", values.get("minPartitions")),
        fail_on_data_loss=_flag("failOnDataLoss", values.get("failOnDataLoss"), True),
        properties=_flag("includeProperties", values.get("includeProperties"), False),
        losses=_flag("includeLosses", values.get("includeLosses"), False),
        definition=values.get("definition"),
        consumer=values.get("consumer"),
    )


def _named(given: Mapping[str, str]) -> dict[str, str]:
    """Options by the names that this module writes; Spark does not care for capitals."""
    values: dict[str, str] = {}
    for key in list(given):
        small = key.lower()
        if small == "path" and "recording" not in (other.lower() for other in given):
            small = "recording"  # load("/data/prices")
        if small in _KNOWN:
            values[_KNOWN[small]] = given[key]
        elif small not in _SPARK:
            raise InvalidArgument(_unknown(key))
    return values


def _unknown(key: str) -> str:
    if key.lower() in _WRITING:
        return f"option {key}: for writing, not for reading"
    near = difflib.get_close_matches(key.lower(), list(_KNOWN), 1)
    return f"option {key}: not known; {f'did you mean {_KNOWN[near[0]]}?' if near else 'known are ' + ', '.join(NAMES)}"


def _text(name: str, value: str) -> str:
    if not value.strip():
        raise InvalidArgument(f"option {name} is empty: give a folder or a URL")
    return value


def _topics(value: str | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    topics = tuple(topic.strip() for topic in value.split(",") if topic.strip())
    if not topics:
        raise InvalidArgument(f"option subscribe {value!r}: give topics, with commas between them")
    return topics


def _pattern(value: str | None) -> str | None:
    if value is None:
        return None
    try:
        re.compile(value)
    except re.error as error:
        raise InvalidArgument(f"option subscribePattern {value!r}: no regular expression: {error}") from None
    return value


def _assigned(value: str | None) -> tuple[tuple[str, str], ...] | None:
    if value is None:
        return None
    wrong = f'option assign {value!r}: must be JSON as {{"TOPIC": ["SOURCE", ...]}}, with sources as in column source'
    try:
        found = json.loads(value)
    except ValueError:
        raise InvalidArgument(wrong) from None
    if not isinstance(found, dict) or not found:
        raise InvalidArgument(wrong)
    pairs = []
    for topic, sources in found.items():
        if not isinstance(sources, list) or not all(isinstance(source, str) for source in sources):
            raise InvalidArgument(wrong)
        pairs += [(topic, source) for source in sources]
    return tuple(pairs)


def _place(name: str, value: str | None, usual: str) -> Place:
    """`earliest`, `latest`, or offsets."""
    if value is None:
        return usual
    word = value.strip().lower()
    if word == LATEST or (word == EARLIEST and name == "startingOffsets"):
        return word
    if word == EARLIEST:
        raise InvalidArgument(f"option {name} {value}: nothing ends there; must be latest, or JSON")
    try:
        found = json.loads(value)
    except ValueError:
        found = None
    offsets = checked_offsets(found, _EARLIEST_NUMBER if name == "startingOffsets" else _LATEST_NUMBER)
    if offsets is None:
        words = "earliest, latest" if name == "startingOffsets" else "latest"
        raise InvalidArgument(
            f'option {name} {value!r}: must be {words}, or JSON as {{"TOPIC": {{"SOURCE": {{"SESSION": NEXT}}}}}}, '
            "where NEXT is a sequence number, -2 for earliest or -1 for latest"
        )
    return offsets


def checked_offsets(found: Any, least: int = 0) -> Offsets | None:
    """Offsets that are as they should be; None: they are not."""
    if not isinstance(found, dict):
        return None
    offsets: Offsets = {}
    for topic, sources in found.items():
        if not isinstance(sources, dict):
            return None
        offsets[topic] = {}
        for source, sessions in sources.items():
            if not isinstance(sessions, dict):
                return None
            if not all(isinstance(n, int) and not isinstance(n, bool) and n >= least for n in sessions.values()):
                return None
            offsets[topic][source] = dict(sessions)
    return offsets


def _time(name: str, value: str | None) -> int | None:
    """Milliseconds since 1970, as of the Kafka source, or ISO 8601; as nanoseconds."""
    if value is None:
        return None
    text = value.strip()
    if re.fullmatch(r"\d{1,15}", text):
        return int(text) * 1_000_000
    try:
        time = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text)
    except ValueError:
        raise InvalidArgument(
            f"option {name} {value!r}: must be milliseconds since 1970, or as 2026-01-31T12:00:00Z"
        ) from None
    since = (time if time.tzinfo else time.replace(tzinfo=timezone.utc)) - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000


def _positive(name: str, value: str | None) -> int | None:
    if value is None:
        return None
    try:
        number = int(value.strip())
    except ValueError:
        number = 0
    if not 0 < number < 1 << 63:
        raise InvalidArgument(f"option {name} {value!r}: must be a whole number, 1 or more")
    return number


def _flag(name: str, value: str | None, usual: bool) -> bool:
    word = "true" if value is None and usual else "false" if value is None else value.strip().lower()
    if word not in ("true", "false"):
        raise InvalidArgument(f"option {name} {value!r}: must be true or false")
    return word == "true"
