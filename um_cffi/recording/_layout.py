"""What a recording looks like on disk: the columns of its rows, the names of its folders and files.

docs/python/recording.md is the contract with those who read recordings; it says in words what is fixed here.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped,import-not-found,unused-ignore]

VERSION = 1
MANIFEST = "manifest.jsonl"
CONSUMERS = "consumers"
TOPICS = "topics"
LOCK = "lock"
OPEN = ".open"
FINISHED = ".arrow"
MAGIC = b"ARROW1\0\0"
"""How a file of Arrow's IPC format begins. A stream follows, whose end is the end of an open segment."""

KINDS = ("message", "loss", "dropped", "reset")
MESSAGE, LOSS, DROPPED, RESET = range(len(KINDS))
COMPRESSIONS = ("lz4", "zstd", "none")

_NAME_MAX = 180  # bytes of a folder's name; file systems take 255
_PLAIN = re.compile(rb"[A-Za-z0-9_.-]")


def arrow() -> Any:
    """The module pyarrow, needed by recordings alone. ImportError says how to get it."""
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:
        raise ImportError("recordings need pyarrow: pip install 'um-cffi[record]'") from error
    return pyarrow


def schema() -> pa.Schema:
    """The columns of a segment."""
    pa = arrow()
    text = pa.dictionary(pa.int32(), pa.string())
    time = pa.timestamp("ns", "UTC")
    return pa.schema(
        [
            ("kind", pa.dictionary(pa.int8(), pa.string())),
            ("topic", text),
            ("source", text),
            ("session", text),
            ("sequence", pa.int64()),
            ("count", pa.int64()),
            ("flags", pa.int32()),
            ("channel", pa.int64()),
            ("hf_number", pa.uint64()),
            ("timestamp", time),
            ("source_timestamp", time),
            ("kernel_timestamp", time),
            ("properties", pa.map_(pa.string(), pa.string())),
            ("properties_bytes", pa.binary()),
            ("payload", pa.binary()),
        ],
        metadata={"um.recording": str(VERSION)},
    )


def escaped(name: str) -> str:
    """A name as the name of a folder, one to one: other characters than A-Z a-z 0-9 _ - and dots are `~` and two
    hexadecimal digits for each byte, and so is a dot at the beginning. A long one ends in `~~` and a digest instead."""
    data = name.encode("utf-8", "surrogateescape")
    parts = [chr(byte) if _PLAIN.match(bytes((byte,))) else f"~{byte:02x}" for byte in data]
    if parts[:1] == ["."]:
        parts[0] = "~2e"
    text = "".join(parts) or "~"
    if len(text) <= _NAME_MAX:
        return text
    return f"{text[: _NAME_MAX - 34].rstrip('~')}~~{hashlib.sha256(data).hexdigest()[:32]}"


def session_of(source: str, generation: int) -> str:
    """The session of a source string: its session ID and topic index, and how often its numbers have begun again."""
    again = f".{generation}" if generation else ""
    parts = source.split(":")
    index = re.search(r"\[(\d+)\]$", source)
    if parts[0] == "LBT-IPC" or parts[0] == "LBT-SMX":
        identity = parts[1] if len(parts) > 1 else ""
    else:
        identity = parts[3] if len(parts) > 3 else ""
    identity = identity.split("[")[0]
    return f"{identity}.{index[1] if index else 0}{again}"


def generation_of(session: str) -> int:
    """How often the numbers of a session's source had begun again; 0 when the text is another one."""
    found = re.fullmatch(r"[^.]*\.[^.]*\.([0-9]{1,9})", session)
    return int(found[1]) if found else 0


def folder_of(topic: str, source: str, session: str) -> str:
    """The folder of a session, relative to the recording."""
    generation = session.split(".", 2)[2:]
    return f"{TOPICS}/{escaped(topic)}/{escaped('+'.join([source, *generation]))}"


def sync_folder(path: Path) -> None:
    """What was made, renamed or removed in a folder is there after a power cut, too. OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes | memoryview, offset: int) -> None:
    """Write everything at an offset. OSError; then a part may be written."""
    view = memoryview(data)
    while len(view):
        done = os.pwrite(descriptor, view, offset)
        view = view[done:]
        offset += done


def replace_file(path: Path, data: bytes) -> None:
    """Put new contents into a file, all of them or none, also after a power cut. OSError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        try:
            write_all(descriptor, data, 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(draft, path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
