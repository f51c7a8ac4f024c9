"""The page of `um web` beside the demo: its processes tell of themselves once a second, and the page shows it.

The demo runs in a private network, browsers do not: the socket of the page is made before, and handed on.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

DOOR = "UM_DEMO_DOOR"  # number of the socket's descriptor
PORT = 8060  # or any other where it is taken
# The descriptor becomes the first one after the standard ones, as service managers hand sockets on.
BEGIN = """
import os, sys
door = int(sys.argv[1])
if door != 3:
    os.dup2(door, 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


def open_door() -> None:
    """Listen on the loopback interface of the network that this is called in, for the page that is started later."""
    if DOOR in os.environ:
        return
    for port in (PORT, 0):
        door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind(("127.0.0.1", port))
            door.listen()
        except OSError:
            door.close()
            continue
        os.set_inheritable(door.fileno(), True)
        os.environ[DOOR] = str(door.detach())
        return


def telling(label: str, options: dict[str, object]) -> dict[str, str]:
    """The environment of a process that tells of itself."""
    return {
        "LBM_MONITOR_INTERVAL": "1",
        "LBM_MONITOR_APPID": label,
        "LBM_MONITOR_TRANSPORT_OPTS": ";".join(f"context|{name}={value}" for name, value in options.items()),
    }


class Page:
    """A process that serves the page; `address` is "" where it cannot be."""

    def __init__(self, root: Path, build: Path, options: dict[str, object]) -> None:
        self.address = ""
        self._process: subprocess.Popen[str] | None = None
        if DOOR not in os.environ or importlib.util.find_spec("uvicorn") is None:
            return
        door = int(os.environ[DOOR])
        words = [f"-o{name}={value}" for name, value in options.items()]
        command = [sys.executable, "-c", BEGIN, str(door), "-m", "um_cffi", "web", "--title", "libum demo", *words]
        environment: dict[str, Any] = {**os.environ, "PYTHONPATH": str(root), "UM_BUILD_DIR": str(build)}
        self._process = subprocess.Popen(
            command, env=environment, pass_fds=(door,), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if line.startswith("um web: http"):
                self.address = line.split()[2]
                break
            sys.stderr.write(line)
        threading.Thread(target=self._read_on, daemon=True).start()

    def _read_on(self) -> None:
        """So that it never waits for a reader."""
        assert self._process is not None and self._process.stderr is not None
        for line in self._process.stderr:
            sys.stderr.write(line)

    def close(self) -> None:
        """End it."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
