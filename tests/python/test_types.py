"""The type checker knows the package: options by name, what calls return.

Most of its time goes into what the package imports. What it has read of that it keeps for its next run, as the linter
does, in the folder of the same name, with a part for each version of Python.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from documented import write_modules

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
from um_cffi import Batch, Context, Message, Receiver, Source
with Context(default_interface="127.0.0.1") as ctx:
    source = Source(ctx, "x", transport_tcp_nodelay=True)
    receiver = Receiver(ctx, "x")
    batch: Batch | None = receiver.recv_batch()
    source.send([b"x", bytearray(b"y")])
    wrong: int = source.send(b"x")  # two errors: no value, and not an int
    Source(ctx, "x", transport_tcp_nodelai=True)  # one error: no such option
"""


def run_mypy(*arguments: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_type_checker_knows_options_and_results() -> None:
    found = run_mypy("-c", PROGRAM).stdout
    assert "transport_tcp_nodelai" in found and "Found 3 errors" in found, found


VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13")
MISTAKEN = "enumerated_options.py"
ENUMERATED = """
import numpy as np
from um_cffi import Context, ReceiverEvent, Source, WildcardReceiver
with Context(operational_mode="embedded") as ctx, Source(ctx, "x", transport="lbtrm") as source:
    source.send(np.zeros(3))
    source.send([b"head", np.zeros(3)])
    WildcardReceiver(ctx, "x", pattern_type="regex")
    Source(ctx, "x", transport="tpc")  # an error: no such transport
    Source(ctx, "x", options={"transport": "tpc"})
def told(event: ReceiverEvent) -> str:
    return event.type.name
"""


@pytest.fixture(name="found", scope="module", params=VERSIONS)
def found_with_a_version(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the type checker prints for a version of Python, in one run over package, examples, pages and the program
    with a mistake; skipped where it knows the version no longer.

    The installed numpy has left 3.9 behind and cannot be read as of that version: what its calls return is not known.
    """
    folder = tmp_path_factory.mktemp("modules")
    modules = write_modules(folder)
    assert len(modules) > 30
    mistaken = folder / MISTAKEN
    mistaken.write_text(ENUMERATED)
    unknown = ["--disable-error-code=var-annotated"] if request.param == "3.9" else []
    files = ["um_cffi", "examples/python", *map(str, modules), str(mistaken)]
    done = run_mypy("--python-version", request.param, *unknown, *files)
    if "is not supported" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert "source files)" in done.stdout, done.stdout + done.stderr
    return done.stdout


def test_enumerated_options_are_literals_and_arrays_are_payloads(found: str) -> None:
    (error,) = [line for line in found.splitlines() if f"{MISTAKEN}:" in line and " error: " in line]
    assert "\"Literal['tpc']\"" in error, found


def test_package_examples_and_pages_pass_the_type_checker_for_every_version(found: str) -> None:
    assert not [line for line in found.splitlines() if " error: " in line and f"{MISTAKEN}:" not in line], found
    assert "Found 1 error in 1 file" in found, found
