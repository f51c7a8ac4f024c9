"""How far those who read a recording have come: a file for each, which says so by topic, source and session.

Any process may write such a file; the recorder reads them to know what everybody has read (K5).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Callable

from um_cffi.errors import InvalidArgument
from um_cffi.recording import _layout
from um_cffi.recording._manifest import Segment

Offsets = Mapping[str, Mapping[str, Mapping[str, int]]]
"""The next sequence number that is wanted, by topic, source and session."""

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")


def commit(folder: Path, consumer: str, offsets: Offsets) -> None:
    """Write down how far a consumer has come. InvalidArgument, OSError."""
    if not isinstance(consumer, str) or not _NAME.fullmatch(consumer):
        raise InvalidArgument(
            f"consumer {consumer!r}: must have 1..100 letters, digits, - _ or dots, and no dot at the beginning"
        )
    text = json.dumps({"version": _layout.VERSION, "consumer": consumer, "offsets": _plain(offsets)})
    place = folder / _layout.CONSUMERS
    if not place.is_dir():
        if not (folder / _layout.MANIFEST).exists():
            raise InvalidArgument(f"{folder} is not a recording: it has no {_layout.MANIFEST}")
        place.mkdir(exist_ok=True)
        _layout.sync_folder(folder)
    _layout.replace_file(place / f"{consumer}.json", text.encode())


def _plain(offsets: object) -> dict[str, dict[str, dict[str, int]]]:
    """Offsets that are as they should be. InvalidArgument."""
    wrong = InvalidArgument("offsets: must be sequence numbers (int) by topic, source and session, as {t: {s: {i: n}}}")
    if not isinstance(offsets, Mapping):
        raise wrong
    result: dict[str, dict[str, dict[str, int]]] = {}
    for topic, sources in offsets.items():
        if not isinstance(sources, Mapping):
            raise wrong
        for source, sessions in sources.items():
            if not isinstance(sessions, Mapping):
                raise wrong
            for session, following in sessions.items():
                if isinstance(following, bool) or not isinstance(following, int) or following < 0:
                    raise wrong
                result.setdefault(str(topic), {}).setdefault(str(source), {})[str(session)] = following
    return result


def committed(folder: Path, consumer: str) -> dict[str, dict[str, dict[str, int]]] | None:
    """What a consumer has committed; None: nothing yet. OSError; InvalidArgument when its file is damaged."""
    try:
        data = (folder / _layout.CONSUMERS / f"{consumer}.json").read_bytes()
    except FileNotFoundError:
        return None
    try:
        value = json.loads(data)
        return _plain(value["offsets"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidArgument(f"the file of consumer {consumer} is damaged: {error}") from None


class Consumers:
    """What the recorder knows of consumers; one that cannot be read has read nothing, which is told once."""

    def __init__(self, folder: Path, names: Sequence[str], tell: Callable[[str, str], None]) -> None:
        self._folder = folder
        self._tell = tell
        self._names = list(names)
        self._trouble: dict[str, str] = {}
        self._offsets: list[dict[str, dict[str, dict[str, int]]]] = []

    def read(self) -> None:
        """Look at their files again."""
        self._offsets = [self._of(name) for name in self._names]

    def _of(self, name: str) -> dict[str, dict[str, dict[str, int]]]:
        try:
            offsets = committed(self._folder, name) or {}
        except (OSError, InvalidArgument) as error:
            if self._trouble.get(name) != str(error):
                self._trouble[name] = str(error)
                self._tell("consumer", f"consumer {name} counts as one that has read nothing: {error}")
            return {}
        if self._trouble.pop(name, None) is not None:
            self._tell("consumer", f"the file of consumer {name} can be read again")
        return offsets

    def have_read(self, segment: Segment) -> bool:
        """Whether all of them have read a segment to its end."""
        names = segment.topic, segment.source, segment.session
        return bool(self._offsets) and all(
            offsets.get(names[0], {}).get(names[1], {}).get(names[2], 0) >= segment.next for offsets in self._offsets
        )
