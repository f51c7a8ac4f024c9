"""What the completion of zsh offers for a line: an interactive shell on a terminal of its own is typed to."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

# compadd is where every match passes; what it is asked to keep for its caller (-O, -A, -D) are none yet.
SETUP = r"""
PROMPT=; unsetopt beep; setopt no_list_beep
{load}
compadd() {{
    if [[ ${{@[1,(i)(-|--)]}} == *-(O|A|D)\ * ]]; then
        builtin compadd "$@"
        return
    fi
    local -a matches
    builtin compadd -A matches "$@"
    print -rl -- $matches >>{found}
    builtin compadd "$@"
}}
_end() {{ print -r -- END >>{found}; BUFFER=; }}
zle -N _end
bindkey '^I' complete-word '^X' _end
print -r -- READY >>{found}
"""


@contextlib.contextmanager
def _terminal(command: Sequence[str], env: Mapping[str, str]) -> Iterator[int]:
    """Runs a command on a terminal; what it prints there is thrown away."""
    ours, theirs = pty.openpty()

    def drain() -> None:
        with contextlib.suppress(OSError):
            while os.read(ours, 4096):
                pass

    shell = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True)
    os.close(theirs)
    reader = threading.Thread(target=drain)
    reader.start()
    try:
        yield ours
    finally:
        os.killpg(shell.pid, signal.SIGKILL)  # what it runs for a completion too
        shell.wait()
        reader.join()
        os.close(ours)


class Zsh:
    """A shell that has run the lines `load`, in a `folder` of its own; used in `with`."""

    def __init__(self, folder: Path, load: str, env: Mapping[str, str], hang_seconds: float) -> None:
        self._found = folder / "found"
        os.mkfifo(self._found)
        self._keep = os.open(self._found, os.O_RDWR)  # so that it never ends
        self._lines = open(self._found)  # noqa: SIM115  closed by __exit__
        setup = folder / "setup"
        setup.write_text(SETUP.format(load=load, found=self._found))
        self._env = {**env, "HOME": str(folder), "ZDOTDIR": str(folder), "TERM": "dumb"}
        self._setup = setup
        self._stack = contextlib.ExitStack()
        self._hang_seconds = hang_seconds

    def __enter__(self) -> Zsh:
        self._terminal = self._stack.enter_context(_terminal(["zsh", "-f", "-i"], self._env))
        os.write(self._terminal, f"source {self._setup}\n".encode())
        assert self._until("READY") == []
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._lines.close()
        os.close(self._keep)

    def _until(self, last: str) -> list[str]:
        """The lines before this one."""
        found: list[str] = []
        timer = threading.Timer(self._hang_seconds, os.write, (self._keep, b"HANGS\n"))
        timer.start()
        try:
            for line in self._lines:
                if line.strip() == last:
                    return found
                assert line != "HANGS\n", found
                found.append(line.strip())
        finally:
            timer.cancel()
        raise AssertionError(found)

    def complete(self, line: str) -> list[str]:
        """What is offered for the last word of a line."""
        os.write(self._terminal, f"{line}\t\x18".encode())
        return sorted({each for each in self._until("END") if each})
