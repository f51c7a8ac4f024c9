"""A disk that can be made slow, or made to refuse: a folder that the kernel shows again through FUSE.

The server is a process of its own, which needs to be root and /dev/fuse, and nothing else: it speaks the protocol of
<linux/fuse.h> itself. Commands are lines on its standard input, each answered by a line: `delay SECONDS` for each
request that changes something, `errno NUMBER` that such requests fail with (0: none).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

IN, OUT = struct.Struct("<IIQQIIIHH"), struct.Struct("<IiQ")
ATTR = struct.Struct("<6Q10I")
MAX_WRITE = 128 << 10
ROOT = 1


class Slow:
    """The server. One thread; `delay` and `refusal` are set by another one."""

    def __init__(self, behind: str, device: int) -> None:
        self._device = device
        self._paths = {ROOT: behind}
        self._nodes = {behind: ROOT}
        self._last = ROOT
        self.delay = 0.0
        self.refusal = 0
        self._does: dict[int, Callable[[int, bytes], bytes]] = {
            1: self._lookup,
            3: lambda node, _: self._attributes_out(os.lstat(self._paths[node])),
            4: self._set_attributes,
            9: self._make_folder,
            10: lambda node, name: self._remove(os.unlink, node, name),
            11: lambda node, name: self._remove(os.rmdir, node, name),
            12: lambda node, body: self._rename(node, body, 8),
            14: lambda node, body: self._open(self._paths[node], struct.unpack_from("<I", body)[0]),
            15: self._read,
            16: self._write,
            17: self._room,
            18: self._release,
            20: self._sync,
            25: lambda node, _: b"",
            26: lambda node, _: struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 12, 9, MAX_WRITE, 1, 0, 0, 0),
            27: lambda node, _: self._open(self._paths[node], os.O_RDONLY | os.O_DIRECTORY),
            28: self._list,
            29: self._release,
            30: self._sync,
            34: lambda node, _: b"",
            35: self._create,
            45: lambda node, body: self._rename(node, body, 16),
        }
        self._changing = {4, 9, 10, 11, 12, 16, 20, 30, 35, 45}

    def run(self) -> None:
        """Serve until the file system is unmounted."""
        while True:
            try:
                request = os.read(self._device, MAX_WRITE + (64 << 10))
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                    continue
                return  # ENODEV: unmounted
            _, code, unique, node, *_ = IN.unpack_from(request)
            if code in (2, 36, 42):  # FORGET, INTERRUPT, BATCH_FORGET: no answer
                continue
            answer, failure = b"", 0
            try:
                if code in self._changing:
                    time.sleep(self.delay)
                    if self.refusal:
                        raise OSError(self.refusal, "told to refuse")
                if code not in self._does:
                    raise OSError(errno.ENOSYS, "not done here")
                answer = self._does[code](node, request[IN.size :])
            except OSError as error:
                failure = error.errno or errno.EIO
            with contextlib.suppress(OSError):
                os.write(self._device, OUT.pack(OUT.size + len(answer), -failure, unique) + answer)

    def _under(self, node: int, name: bytes) -> str:
        return os.path.join(self._paths[node], name.split(b"\0")[0].decode())

    def _node(self, path: str) -> int:
        node = self._nodes.get(path)
        if node is None:
            self._last += 1
            node = self._nodes[path] = self._last
            self._paths[node] = path
        return node

    def _attributes(self, found: os.stat_result) -> bytes:
        seconds = [int(found.st_atime), int(found.st_mtime), int(found.st_ctime)]
        rest = found.st_mode, found.st_nlink, found.st_uid, found.st_gid, 0, 4096, 0
        return ATTR.pack(found.st_ino, found.st_size, found.st_blocks, *seconds, 0, 0, 0, *rest)

    def _attributes_out(self, found: os.stat_result) -> bytes:
        return struct.pack("<QII", 0, 0, 0) + self._attributes(found)

    def _entry(self, path: str) -> bytes:
        found = os.lstat(path)
        return struct.pack("<QQQQII", self._node(path), 0, 0, 0, 0, 0) + self._attributes(found)

    def _lookup(self, node: int, name: bytes) -> bytes:
        return self._entry(self._under(node, name))

    def _set_attributes(self, node: int, body: bytes) -> bytes:
        valid, _, _, size = struct.unpack_from("<IIQQ", body)
        if valid & 8:
            os.truncate(self._paths[node], size)
        return self._attributes_out(os.lstat(self._paths[node]))

    def _make_folder(self, node: int, body: bytes) -> bytes:
        path = self._under(node, body[8:])
        os.mkdir(path)
        return self._entry(path)

    def _remove(self, how: Callable[[str], None], node: int, name: bytes) -> bytes:
        path = self._under(node, name)
        how(path)
        self._nodes.pop(path, None)
        return b""

    def _rename(self, node: int, body: bytes, names: int) -> bytes:
        (folder,) = struct.unpack_from("<Q", body)
        old, new = body[names:].split(b"\0")[:2]
        before, after = self._under(node, old), self._under(folder, new)
        os.rename(before, after)
        moved = self._nodes.pop(before, None)
        if moved is not None:
            self._nodes[after] = moved
            self._paths[moved] = after
        return b""

    def _open(self, path: str, flags: int) -> bytes:
        return struct.pack("<QII", os.open(path, flags & ~os.O_CREAT), 0, 0)

    def _create(self, node: int, body: bytes) -> bytes:
        flags, mode = struct.unpack_from("<II", body)
        path = self._under(node, body[16:])
        descriptor = os.open(path, flags | os.O_CREAT, mode & 0o777)
        return self._entry(path) + struct.pack("<QII", descriptor, 0, 0)

    def _read(self, node: int, body: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", body)
        return os.pread(handle, size, offset)

    def _write(self, node: int, body: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", body)
        return struct.pack("<II", os.pwrite(handle, body[40 : 40 + size], offset), 0)

    def _list(self, node: int, body: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", body)
        names = [".", "..", *sorted(os.listdir(handle))]
        out = b""
        for at, name in enumerate(names[offset:], offset + 1):
            text = name.encode()
            entry = struct.pack("<QQII", at, at, len(text), 0) + text
            entry += bytes(-len(entry) % 8)
            if len(out) + len(entry) > size:
                break
            out += entry
        return out

    def _release(self, node: int, body: bytes) -> bytes:
        os.close(struct.unpack_from("<Q", body)[0])
        return b""

    def _sync(self, node: int, body: bytes) -> bytes:
        return b""

    def _room(self, node: int, body: bytes) -> bytes:
        found = os.statvfs(self._paths[ROOT])
        blocks = found.f_blocks, found.f_bfree, found.f_bavail, found.f_files, found.f_ffree
        return struct.pack("<5Q10I", *blocks, found.f_bsize, 255, found.f_frsize, *[0] * 7)


def mount(folder: str) -> int:
    """A new file system of FUSE at `folder`; where its requests come. OSError."""
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"slow", folder.encode(), b"fuse", 0, options) != 0:
        raise OSError(ctypes.get_errno(), "mount")
    return device


def main() -> None:
    behind, folder = sys.argv[1:]
    try:
        device = mount(folder)
    except OSError as error:
        print(f"no file system of FUSE can be mounted here: {error}", flush=True)
        return
    server = Slow(behind, device)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    print("ready", flush=True)
    for line in sys.stdin:
        word, value = line.split()
        if word == "delay":
            server.delay = float(value)
        else:
            server.refusal = int(value)
        print("done", flush=True)
    os._exit(0)


class Disk:
    """The file system, as a test sees it."""

    def __init__(self, folder: Path, process: subprocess.Popen[str]) -> None:
        self.folder = folder
        self._process = process

    def _tell(self, text: str) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"

    def delay(self, seconds: float) -> None:
        """What changes something takes so long from now on."""
        self._tell(f"delay {seconds}")

    def refuse(self, number: int) -> None:
        """What changes something fails so from now on; 0: not any more."""
        self._tell(f"errno {number}")


@contextlib.contextmanager
def slow_disk(place: Path) -> Iterator[Disk | str]:
    """A disk in a folder below `place`; a text when none can be had here."""
    behind, folder = place / "behind", place / "slow"
    behind.mkdir()
    folder.mkdir()
    words = [sys.executable, __file__, str(behind), str(folder)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None and process.stdin is not None
        answer = process.stdout.readline().strip()
        if answer != "ready":
            yield answer
            return
        try:
            yield Disk(folder, process)
        finally:
            process.stdin.close()  # it ends, and whoever waits for it gets an error
            process.wait()
            subprocess.run(["umount", "-l", str(folder)], check=False)


if __name__ == "__main__":
    main()
