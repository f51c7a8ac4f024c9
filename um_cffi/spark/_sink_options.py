"""Options of writing, checked on the driver. A text of each says option, value and remedy. Sent to executors."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from um_cffi.errors import InvalidArgument
from um_cffi.spark import _definition, _schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

NAMES = (
    "topic",
    "definition",
    "config",
    "stateLocation",
    "partitionTopics",
    "queryId",
    "waitForReceivers",
    "minReceivers",
    "maxStagedBytes",
)
TOPIC, PAYLOAD = "topic", "payload"
PROPERTIES, CHANNEL = "properties", "channel"
_KNOWN = {name.lower(): name for name in NAMES}
_SPARK = ("path", "checkpointlocation", "schema", "mergeschema", "header")
_STAGED_MAX = 8 << 30
_TOPIC_MAX = 246
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


@dataclass(frozen=True)
class WriteOptions:
    """What is to be published, and how."""

    state: str
    """Folder of the numbers and of staged files."""
    topic: str | None = None
    """None: the column `topic`."""
    definition: _definition.PayloadDefinition | None = None
    columns: tuple[tuple[str, str], ...] = ()
    """Fields of the definition with the columns that they are taken from."""
    extras: tuple[str, ...] = ()
    """Which columns there are for what goes with a message beside its payload."""
    config: str | None = None
    """Path of the configuration file."""
    config_text: bytes = b""
    """What was in it on the driver."""
    partition_topics: bool = False
    query: str | None = None
    """`queryId`."""
    patience: float = 10.0
    """Seconds: `waitForReceivers`."""
    receivers: int = 1
    """`minReceivers`."""
    staged_max: int = _STAGED_MAX
    """Bytes of one partition."""


def write_options(given: Mapping[str, str], schema: StructType, streaming: bool) -> WriteOptions:
    """The options of a writer of rows with these columns. InvalidArgument."""
    values = _named(given)
    columns = {each.name: each.dataType for each in schema}
    definition = None if "definition" not in values else _definition.load_to_write(values["definition"])
    config = values.get("config")
    query = values.get("queryId")
    if query is not None and (streaming or not query.strip()):
        reason = "a streaming query has an id of its own" if streaming else "it is empty"
        raise InvalidArgument(f"option queryId {query!r}: {reason}; leave it out")
    return WriteOptions(
        state=_state(values.get("stateLocation"), _checkpoint(given), streaming),
        topic=_topic(values.get("topic"), columns),
        definition=definition,
        columns=_payload(columns) if definition is None else _fields(definition, columns),
        extras=_extras(columns, set() if definition is None else {column for column, _ in definition.fields()}),
        config=config,
        config_text=b"" if config is None else _contents(config),
        partition_topics=_flag("partitionTopics", values.get("partitionTopics", "false")),
        query=query,
        patience=_seconds("waitForReceivers", values.get("waitForReceivers", "10")),
        receivers=_whole("minReceivers", values.get("minReceivers", "1")),
        staged_max=_whole("maxStagedBytes", values.get("maxStagedBytes", str(_STAGED_MAX))),
    )


def _named(given: Mapping[str, str]) -> dict[str, str]:
    values = {}
    for key in list(given):
        small = key.lower()
        if small in _KNOWN:
            values[_KNOWN[small]] = given[key]
        elif small not in _SPARK:
            near = difflib.get_close_matches(small, list(_KNOWN), 1)
            hint = f"did you mean {_KNOWN[near[0]]}?" if near else "known for writing are " + ", ".join(NAMES)
            raise InvalidArgument(f"option {key}: not known for writing; {hint}")
    return values


def _checkpoint(given: Mapping[str, str]) -> str | None:
    return next((given[key] for key in list(given) if key.lower() == "checkpointlocation"), None)


def _state(chosen: str | None, checkpoint: str | None, streaming: bool) -> str:
    """The folder of the numbers: the one that was given, or one beside the checkpoint."""
    remedy = "give a folder that all processes see, and that lasts as long as the receivers of the topics"
    if chosen is None and checkpoint is None:
        why = (
            "the checkpoint is not told as an option (checkpointLocation) of this query"
            if streaming
            else "a batch write has no checkpoint to keep numbers beside"
        )
        raise InvalidArgument(f"option stateLocation is missing: {why}; {remedy}")
    name, text = ("stateLocation", chosen) if chosen is not None else ("checkpointLocation", str(checkpoint))
    path = text
    if _URL.match(text):
        parts = urlsplit(text)
        if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            raise InvalidArgument(
                f"option {name} {text}: numbers need a mounted file system, with locks and atomic renames: "
                f"{'give option stateLocation' if chosen is None else 'a path'}; {remedy}"
            )
        path = unquote(parts.path)
    if not path.strip() or not os.path.isabs(path):
        if chosen is not None or not path.strip():
            raise InvalidArgument(f"option {name} {text!r}: must be an absolute path; {remedy}")
        path = os.path.abspath(path)
    return path if chosen is not None else path.rstrip("/") + ".ultramessaging"


def _topic(topic: str | None, columns: Mapping[str, Any]) -> str | None:
    if topic is not None:
        if not 0 < len(topic.encode()) <= _TOPIC_MAX:
            raise InvalidArgument(f"option topic {topic!r}: must have 1 to {_TOPIC_MAX} bytes")
        return topic
    if TOPIC not in columns:
        raise InvalidArgument(f"no topic: give the option topic, or a column topic; columns are {_listed(columns)}")
    if columns[TOPIC].typeName() != "string":
        raise InvalidArgument(f"column topic is {columns[TOPIC].simpleString()}: must be string")
    return None


def _payload(columns: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    if PAYLOAD not in columns:
        raise InvalidArgument(
            f"no column payload, but {_listed(columns)}: make one (binary or string), or give the option definition"
        )
    if columns[PAYLOAD].typeName() not in ("binary", "string"):
        raise InvalidArgument(f"column payload is {columns[PAYLOAD].simpleString()}: must be binary or string")
    return ()


def _fields(definition: _definition.PayloadDefinition, columns: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Fields with their columns."""
    pairs, missing = [], []
    for field in definition.pdm():
        column = _definition.column_of(str(field.name))
        if column in columns:
            pairs.append((str(field.name), column))
        elif field.required:
            missing.append(column)
    if missing:
        raise InvalidArgument(
            f"option definition: its required fields have no columns {', '.join(missing)}; there are {_listed(columns)}"
        )
    taken = {column for _, column in pairs} | {name for name, _ in (*_schema.COLUMNS, *_schema.LOSSES)}
    strange = [name for name in columns if name not in taken and name not in (PROPERTIES, CHANNEL)]
    if strange:
        raise InvalidArgument(
            f"option definition: it has no field for the columns {', '.join(strange)}; drop them, or rename them"
        )
    return tuple(pairs)


def _extras(columns: Mapping[str, Any], fields: set[str]) -> tuple[str, ...]:
    """What goes with a message; a field of the definition that has such a name is not meant by it."""
    found = []
    for name, kinds in ((PROPERTIES, ("map<string,string>",)), (CHANNEL, ("tinyint", "smallint", "int", "bigint"))):
        if name not in columns or name in fields:
            continue
        kind = columns[name].simpleString()
        if kind not in kinds:
            raise InvalidArgument(f"column {name} is {kind}: must be {kinds[-1]}, or drop or rename it")
        found.append(name)
    return tuple(found)


def _listed(columns: Mapping[str, Any]) -> str:
    return ", ".join(columns) or "none"


def _contents(config: str) -> bytes:
    try:
        with open(config, "rb") as file:
            return file.read()
    except OSError as error:
        raise InvalidArgument(
            f"option config {config!r}: {error.strerror}; give a configuration file that the driver can read"
        ) from None


def _flag(name: str, value: str) -> bool:
    word = value.strip().lower()
    if word not in ("true", "false"):
        raise InvalidArgument(f"option {name} {value!r}: must be true or false")
    return word == "true"


def _seconds(name: str, value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e6:
        raise InvalidArgument(f"option {name} {value!r}: must be seconds, 0 or more")
    return seconds


def _whole(name: str, value: str) -> int:
    try:
        number = int(value.strip())
    except ValueError:
        number = 0
    if not 0 < number < 1 << 62:
        raise InvalidArgument(f"option {name} {value!r}: must be a whole number, 1 or more")
    return number
