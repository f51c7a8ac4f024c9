"""What a recorder does about the files that the one before it has left: it keeps whole record batches, and says so.

Called before recording begins, by the thread that opens the recording.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from um_cffi.recording import _layout, _segment
from um_cffi.recording._manifest import Manifest, Segment, segment_line
from um_cffi.recording._settings import Settings

DAMAGED = ".damaged"


def recover(folder: Path, manifest: Manifest, settings: Settings) -> list[str]:
    """Bring the manifest and the files into line; texts for operators. OSError: a folder cannot be read or written.

    A file that cannot be read is left alone, and told of. One that holds no whole record batch is put aside.
    """
    told: list[str] = []
    told += remove(folder, manifest, list(manifest.state.dropped))
    # Not by the time of files, which copies do not keep: by what is in them. All of that at once would be too much.
    found = sorted(
        (each.names, each.tally.first, path)
        for path in list(_unlisted(folder, manifest))
        if (each := _look(folder, path, told)) is not None
    )
    known: dict[tuple[str, str, str], list[Segment]] = {names: [] for names, _, _ in found}
    for segment in manifest.state.segments.values():
        known.get((segment.topic, segment.source, segment.session), []).append(segment)
    listed = []
    for names, _, path in found:
        each = _look(folder, path, told)
        segment_now = None if each is None else _adopt(folder, path, each, known[names], settings, told)
        if segment_now is not None:
            listed.append(segment_now)
            known[names].append(segment_now)
    if listed:
        for parent in {(folder / each.path).parent for each in listed}:
            _layout.sync_folder(parent)
        manifest.append([segment_line(each) for each in listed])
    if manifest.state.damaged:
        told.append(f"{manifest.state.damaged} lines of the manifest cannot be understood and are left out")
    return told


def remove(folder: Path, manifest: Manifest, paths: list[str]) -> list[str]:
    """Remove files that the manifest calls dropped. Those that resist, with the reason: they stay dropped, and are
    removed the next time."""
    gone, left = [], []
    for path in paths:
        try:
            (folder / path).unlink(missing_ok=True)
        except OSError as error:
            left.append(f"{path} cannot be removed: {error.strerror}")
            continue
        gone.append(path)
    manifest.removed(gone)
    return left


def _unlisted(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Files of segments that the manifest does not know. OSError: a folder cannot be read."""

    def failed(error: OSError) -> None:
        raise error

    top = folder / _layout.TOPICS
    if not top.exists():
        return
    state = manifest.state
    for parent, _, names in os.walk(top, onerror=failed):
        for name in names:
            path = str((Path(parent) / name).relative_to(folder))
            if name.startswith(".") and name.endswith(".new"):
                (folder / path).unlink()  # a draft that was never finished
            elif name.endswith(_layout.OPEN):
                finished = path[: -len(_layout.OPEN)] + _layout.FINISHED
                if (folder / finished).exists() or finished in state.segments:
                    (folder / path).unlink()  # what is whole in it was finished
                else:
                    yield path
            elif name.endswith(_layout.FINISHED) and path not in state.segments and path not in state.dropped:
                yield path


def _look(folder: Path, path: str, told: list[str]) -> _segment.Recovered | None:
    """What is in a file; None: nothing that could be kept."""
    try:
        data = (folder / path).read_bytes()
    except OSError as error:
        told.append(f"{path} cannot be read and is left alone: {error.strerror}")
        return None
    recovered = _segment.examine(data)
    if recovered is not None:
        return recovered
    if not data:
        (folder / path).unlink()
        return None
    told.append(f"{path} of {len(data)} bytes holds no whole record batch and is put aside as {path}{DAMAGED}")
    os.rename(folder / path, folder / (path + DAMAGED))
    return None


def _adopt(
    folder: Path,
    path: str,
    found: _segment.Recovered,
    known: Iterable[Segment],
    settings: Settings,
    told: list[str],
) -> Segment | None:
    """Make a listed segment of it, unless one of its session is `known` that has the same."""
    for other in known:
        if other.first < found.tally.next and found.tally.first < other.next:
            told.append(f"{path} holds what {other.path} has, and is put aside as {path}{DAMAGED}")
            os.rename(folder / path, folder / (path + DAMAGED))
            return None
    told.append(f"{path}: {found.tally.messages} messages up to {found.tally.next - 1} are kept")
    if path.endswith(_layout.OPEN):
        return _segment.rewrite(folder, path[: -len(_layout.OPEN)], found, settings.compression)
    if found.whole:
        return Segment(path, *found.names, bytes=(folder / path).stat().st_size, **vars(found.tally))
    os.rename(folder / path, folder / (path[: -len(_layout.FINISHED)] + _layout.OPEN))
    return _segment.rewrite(folder, path[: -len(_layout.FINISHED)], found, settings.compression)
