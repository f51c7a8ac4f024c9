"""The daemon srs with clients of another implementation: configuration, log, sockets, signals, state of its clients."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hosts import SLOW, Process, free_port, program
from srs_client import FLOOD, HANG, RDR, RIR, WIR, SrsClient, frame

Start = Callable[..., tuple[Process, int]]


def config(folder: Path, srs: str = "", daemon: str = "", rest: str = "") -> Path:
    path = folder / f"srs{len(list(folder.iterdir()))}.xml"
    path.write_text(
        f"<um-srs><daemon>{daemon}</daemon><srs><interface>127.0.0.1</interface><port>0</port>{srs}</srs>{rest}</um-srs>"
    )
    return path


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[Process] = []

    def one(srs: str = "", daemon: str = "", rest: str = "") -> tuple[Process, int]:
        process = Process([program("srs"), str(config(tmp_path, srs, daemon, rest))])
        running.append(process)
        found = process.expect(r"\[INFO\]: SRS-um-9: srs started on 127\.0\.0\.1:(\d+)$")
        return process, int(found.group(1))

    yield one
    for process in running:
        process.close()


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    words = [program("srs"), *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=HANG * SLOW)


def test_sources_meet_interest_and_end_when_they_are_deleted(start: Start) -> None:
    process, port = start()
    with SrsClient(port, 1).join() as source, SrsClient(port, 2).join() as told, SrsClient(port, 3).join(FLOOD) as all_:
        told.batch(told.want(RIR, "orders"), told.want(WIR, "^quo"))
        source.batch(source.sir(1, "orders"), source.sir(2, "quotes"), source.sir(3, "other"))
        told.wait(lambda: len(told.sources) == 2)
        all_.wait(lambda: len(all_.sources) == 3)
        assert {topic for topic, _ in told.sources.values()} == {"orders", "quotes"}
        source.batch(source.sdr(1, "orders"))
        told.wait(lambda: len(told.sources) == 1)
        told.batch(told.want(RDR, "orders"))
        source.keepalive()
        source.wait(lambda: source.keepalives == 1)
        assert source.log == []
    process.signal(signal.SIGTERM)
    assert "3 registrations" in process.finish()


def test_sources_of_a_killed_client_end_after_their_lifetime(start: Start) -> None:
    _, port = start("<source-state-lifetime>1</source-state-lifetime>")
    with SrsClient(port, 2).join(FLOOD) as told:
        client = SrsClient(port, 1).join()
        client.batch(client.sir(1, "orders"))
        told.wait(lambda: len(told.sources) == 1)
        client.reset()
        told.wait(lambda: not told.sources)
        assert [entry[0] for entry in told.log] == ["SIR", "SER"]


def test_a_client_that_returns_in_time_is_not_noticed_by_others(start: Start) -> None:
    _, port = start()
    with SrsClient(port, 2).join(FLOOD) as told:
        client = SrsClient(port, 1).join()
        client.batch(client.sir(1, "orders"))
        told.wait(lambda: len(told.sources) == 1)
        client.reset()
        with SrsClient(port, 1).join() as back:
            back.batch(back.sir(1, "orders"), back.sir(2, "quotes"))
            told.wait(lambda: len(told.sources) == 2)
        assert [entry[:2] for entry in told.log] == [("SIR", "orders"), ("SIR", "quotes")]


def test_a_restarted_service_learns_everything_from_its_clients(tmp_path: Path) -> None:
    port = free_port()
    path = tmp_path / "srs.xml"
    path.write_text(f"<um-srs><srs><interface>127.0.0.1</interface><port>{port}</port></srs></um-srs>")
    for turn in range(2):
        process = Process([program("srs"), str(path)])
        try:
            process.expect("srs started")
            with SrsClient(port, 1).join() as source, SrsClient(port, 2).join() as told:
                told.batch(told.want(RIR, "orders"))
                source.batch(source.sir(turn, "orders"))
                told.wait(lambda: len(told.sources) == 1)
                process.signal(signal.SIGKILL if turn == 0 else signal.SIGINT)
                if turn == 1:
                    assert process.wait() == 0
                    assert told.wait_closed() == 0x102
                process.popen.wait()
        finally:
            process.close()


def test_refusals_name_their_reason_in_the_log_and_end_the_connection(start: Start) -> None:
    process, port = start()
    with SrsClient(port, 1) as client:
        client.setup()
        client.register(mode=9)
        assert client.wait_closed() == 0x202
        process.expect(r"SRS-10704-1: client\[127\.0\.0\.1:\d+\] refused: unsupported interestMode")
    with SrsClient(port, 2) as client:
        client.setup()
        client.register(version=0)
        client.wait(lambda: client.client_id != 0)
        process.expect("SRS-10704-3: ")
    with SrsClient(port, 3) as client:
        client.setup(keepalive=499)
        assert client.wait_closed() == 0x003


def test_x3_garbage_and_half_open_clients_do_not_disturb_the_others(start: Start) -> None:
    process, port = start()
    with SrsClient(port, 1).join() as source, SrsClient(port, 2).join(FLOOD) as told:
        half_open = [SrsClient(port, 100 + i) for i in range(200)]
        for client in half_open[::2]:
            with contextlib.suppress(OSError):  # closed already, on a slow machine
                client.send(frame(1, 0, b"\0\1")[:7])
        for i in range(50):
            with SrsClient(port, 1000 + i) as client:
                client.send(os.urandom(2000))
                client.wait_closed()
        for number in range(100):
            source.batch(source.sir(number, f"t{number}"))
        told.wait(lambda: len(told.sources) == 100)
        for client in half_open:
            client.close()
    process.signal(signal.SIGINT)
    sums = re.search(r"(\d+) with bad frames, (\d+) clients refused", process.finish())
    assert sums is not None
    assert int(sums.group(1)) + int(sums.group(2)) == 50


def test_frames_in_single_bytes_are_understood(start: Start) -> None:
    _, port = start()
    with SrsClient(port, 1) as source, SrsClient(port, 2).join(FLOOD) as told:
        source.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        source.bytewise = True
        source.join()
        source.batch(source.sir(1, "orders"))
        told.wait(lambda: len(told.sources) == 1)


def test_the_pid_file_is_there_while_the_daemon_runs(start: Start, tmp_path: Path) -> None:
    pid_file = tmp_path / "srs.pid"
    process, port = start(daemon=f"<pid-file>{pid_file}</pid-file>")
    until(lambda: pid_file.exists() and pid_file.read_text() == f"{process.pid}\n")
    second = config(tmp_path, daemon=f"<pid-file>{pid_file}</pid-file>")
    second.write_text(second.read_text().replace("<port>0<", f"<port>{port}<"))
    assert run(second).returncode == 1  # the port is taken, and the file stays the first one's
    assert int(pid_file.read_text()) == process.pid
    process.signal(signal.SIGINT)
    process.finish()
    assert not pid_file.exists()


def test_the_manager_is_told_when_the_port_is_open(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(tmp_path / "notify"))
        told.settimeout(HANG * SLOW)
        process = Process([program("srs"), str(config(tmp_path))], env={"NOTIFY_SOCKET": str(tmp_path / "notify")})
        try:
            assert told.recv(100) == b"READY=1"
            assert "SRS-um-9: srs started" in process.output
            process.signal(signal.SIGTERM)
            assert told.recv(100) == b"STOPPING=1"
            process.finish()
        finally:
            process.close()


def test_a_pid_file_on_a_full_disk_is_said_and_ends_it(tmp_path: Path) -> None:
    path = config(tmp_path, daemon="<pid-file>/dev/full</pid-file>")
    done = run(path)
    assert done.returncode == 1 and "SRS-10386-1305: pid-file /dev/full cannot be written: No space left" in done.stdout


def test_the_debug_file_has_the_kinds_of_its_mask(tmp_path: Path) -> None:
    debug = tmp_path / "a:b"
    process = Process([program("srs"), "-D", f"{debug}:0x1", str(config(tmp_path))])
    process.expect("srs started on")
    process.signal(signal.SIGTERM)
    assert process.wait() == 0
    assert "log: level 7: SRS-um-9: srs started on" in debug.read_text()
    for wrong in (str(debug), f"{debug}:", f"{debug}:all", ":1"):
        refused = run("-D", wrong)
        assert refused.returncode == 1 and "must be PATH:MASK" in refused.stderr


def test_a_log_that_was_moved_away_is_opened_anew(tmp_path: Path) -> None:
    """What logrotate does: rename, then SIGHUP; where no new file can be made, the old one goes on."""
    log, moved = tmp_path / "srs.log", tmp_path / "srs.log.1"
    process = Process([program("srs"), str(config(tmp_path, daemon=f"<log type='file'>{log}</log>"))])
    try:
        until(lambda: log.exists() and "srs started" in log.read_text())
        log.rename(moved)
        process.signal(signal.SIGHUP)
        until(lambda: log.exists() and "SRS-um-17" in log.read_text())
        log.rename(tmp_path / "srs.log.2")
        log.mkdir()
        process.signal(signal.SIGHUP)
        until(lambda: (tmp_path / "srs.log.2").read_text().count("SRS-um-17") == 2)
        process.signal(signal.SIGTERM)
        process.finish()
    finally:
        process.close()
    assert "srs started" in moved.read_text() and "SRS-um-12" not in moved.read_text()
    assert "SRS-um-12" in (tmp_path / "srs.log.2").read_text()


# configuration


EDGES = [
    ("srs", "port", (0, 65535), (-1, 65536)),
    ("srs", "state-lifetime", (0, 20736000), (-1, 20736001)),
    ("srs", "source-state-lifetime", (0, 20736000), (-1, 20736001)),
    ("srs", "interest-state-lifetime", (0, 20736000), (-1, 20736001)),
    ("srs", "route-state-lifetime", (0, 20736000), (-1, 20736001)),
    ("srs", "context-name-state-lifetime", (0, 20736000), (-1, 20736001)),
    ("srs", "source-leave-backoff", (0, 60000), (-1, 60001)),
    ("clientactor", "record-queue-service-interval", (1, 1000), (0, 1001)),
    ("clientactor", "request-stream-max-msg-count", (1, 1000), (0, -1)),
    ("clientactor", "batch-frame-max-record-count", (1, 1000), (0, "many")),
    ("clientactor", "batch-frame-max-datagram-size", (1, 16777215), (0, 16777216)),
    ("publishing-interval", "default", (0, 200, 7776000000), (199, 7776000001)),
    ("publishing-interval", "srs-stats", (0, 200, 7776000000), (1, 199, 7776000001)),
    ("otidmap", "shards", (1, 7), (0,)),
]


def document(parent: str, inner: str) -> str:
    element = inner if parent == "srs" else f"<{parent}>{inner}</{parent}>"
    if parent == "publishing-interval":
        return f"<um-srs><daemon-monitor topic='t'>{element}</daemon-monitor></um-srs>"
    return f"<um-srs><srs>{element}</srs></um-srs>"


@pytest.mark.parametrize(("parent", "element", "good", "bad"), EDGES)
def test_each_edge_of_a_range_is_accepted_and_what_is_beyond_is_not(
    tmp_path: Path, parent: str, element: str, good: tuple[object, ...], bad: tuple[object, ...]
) -> None:
    path = tmp_path / "srs.xml"
    for value in (*good, *bad):
        path.write_text(document(parent, f"<{element}>{value}</{element}>"))
        done = run("--validate", path)
        assert (done.returncode == 0) == (value in good), (value, done.stderr)
        if value in good and element not in ("shards",):
            assert f"<{element}>{value}</{element}>" in run("-d", path).stdout
        if value in bad:
            assert "SRS-10386-1303" in done.stderr and str(path) in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "<um-srs><srs><port>1</port><port>2</port></srs></um-srs>",
        "<um-srs><nothing/></um-srs>",
        "<um-srs><daemon><log>x</log></daemon></um-srs>",
        "<um-srs><daemon><log type='file'></log></daemon></um-srs>",
        "<um-srs><daemon><log type='file' frequency='weekly'>x</log></daemon></um-srs>",
        "<um-srs><srs><application-id> </application-id></srs></um-srs>",
        "<!DOCTYPE um-srs [<!ENTITY x 'y'>]><um-srs/>",
        "<um-srs>",
        "",
    ],
)
def test_documents_that_are_wrong_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "srs.xml"
    path.write_text(text)
    assert run("-v", path).returncode == 1
    assert run(path).returncode == 1


def test_the_dump_is_a_configuration_that_dumps_the_same(tmp_path: Path) -> None:
    first = run("-d").stdout
    path = tmp_path / "srs.xml"
    path.write_text(first)
    assert "<port>27000</port>" in first
    assert run("-v", path).returncode == 0
    assert run("-d", path).stdout == first


def test_state_lifetime_is_the_default_of_the_others(tmp_path: Path) -> None:
    text = run(
        "-d", config(tmp_path, "<source-state-lifetime>5</source-state-lifetime><state-lifetime>7</state-lifetime>")
    )
    assert "<source-state-lifetime>5<" in text.stdout
    assert "<interest-state-lifetime>7<" in text.stdout


@pytest.mark.skipif(shutil.which("xmllint") is None, reason="xmllint is not installed")
def test_the_printed_schema_accepts_what_the_daemon_accepts(tmp_path: Path) -> None:
    schema, good, bad = tmp_path / "srs.xsd", tmp_path / "good.xml", tmp_path / "bad.xml"
    schema.write_text(run("-x").stdout)
    good.write_text(run("-d").stdout)
    bad.write_text("<um-srs><srs><port>65536</port></srs></um-srs>")
    for path, status in ((good, 0), (bad, 3)):
        words = ["xmllint", "--noout", "--schema", str(schema), str(path)]
        assert subprocess.run(words, capture_output=True, check=False).returncode == status


def test_validate_needs_a_file_and_help_says_how() -> None:
    done = run("-v")
    assert done.returncode == 1 and "SRS-10386-1306" in done.stderr
    assert "srs, libum version" in run("--help").stdout
    assert run("--nonsense").returncode == 1
    assert run("one", "two").returncode == 1


def test_an_address_that_is_taken_is_said_and_ends_it(start: Start, tmp_path: Path) -> None:
    _, port = start()
    path = tmp_path / "second.xml"
    path.write_text(f"<um-srs><srs><interface>127.0.0.1</interface><port>{port}</port></srs></um-srs>")
    done = run(path)
    assert done.returncode == 1
    assert (
        f"[CRITICAL]: SRS-10386-1321: Attempt to start TCP Server failed; Server IP address[127.0.0.1] port[{port}]"
        in done.stdout
    )


# log


def rolled(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("srs.log_"))


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + HANG * SLOW
    while not condition():
        assert time.monotonic() < end, "what is waited for does not come"
        time.sleep(0.02)


def content(path: Path) -> bytes:
    """Of a file that may just be between its old name and its new one."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


@pytest.fixture
def roll(tmp_path: Path) -> Iterator[Callable[[str], Process]]:
    """Starts a daemon whose log has one MB already, so that its first line rolls it."""
    running: list[Process] = []

    def one(attributes: str) -> Process:
        log, path = tmp_path / "srs.log", tmp_path / "srs.xml"
        log.write_bytes(b"x" * 1048576)
        path.write_text(
            f"<um-srs><daemon><log type='file' {attributes}>{log}</log></daemon>"
            "<srs><interface>127.0.0.1</interface><port>0</port></srs></um-srs>"
        )
        process = Process([program("srs"), str(path)])
        running.append(process)
        until(lambda: b"srs started" in content(log))
        return process

    yield one
    for process in running:
        process.close()


@pytest.mark.parametrize("compression", ["none", "gzip", "zip"])
def test_a_log_of_its_size_is_rolled_and_packed(
    roll: Callable[[str], Process], tmp_path: Path, compression: str
) -> None:
    process = roll(f"size='1' compression='{compression}'")
    ending = {"none": "", "gzip": ".gz", "zip": ".zip"}[compression]
    name = rf"srs\.log_{process.pid}\.\d{{4}}-\d\d-\d\d\.1{re.escape(ending)}"
    until(lambda: len(rolled(tmp_path)) == 1 and re.fullmatch(name, rolled(tmp_path)[0]))
    process.signal(signal.SIGINT)
    process.finish()  # waits for the packing
    first = tmp_path / rolled(tmp_path)[0]
    if compression == "zip":
        with zipfile.ZipFile(first) as archive:
            assert archive.testzip() is None
            assert archive.namelist() == [first.name.removesuffix(".zip")]
            data = archive.read(archive.namelist()[0])
    else:
        data = gzip.decompress(first.read_bytes()) if compression == "gzip" else first.read_bytes()
    assert data == b"x" * 1048576
    assert (tmp_path / "srs.log").read_text().count("\n") >= 3


def test_no_rolling_by_size_when_it_is_zero(roll: Callable[[str], Process], tmp_path: Path) -> None:
    roll("size='0'")
    assert rolled(tmp_path) == []
    assert (tmp_path / "srs.log").read_bytes().startswith(b"x" * 1048576)


def test_a_log_that_is_a_link_keeps_its_name(tmp_path: Path) -> None:
    """As /dev/stdout is one, which must not become a file."""
    link, target = tmp_path / "link", tmp_path / "target"
    target.write_bytes(b"x" * 1048576)
    link.symlink_to(target)
    path = config(tmp_path, daemon=f"<log type='file' size='1'>{link}</log>")
    process = Process([program("srs"), str(path)])
    until(lambda: b"srs started" in content(target))
    process.signal(signal.SIGTERM)
    assert process.wait() == 0 and link.is_symlink()


def earlier(folder: Path, number: int, size: int) -> str:
    path = folder / f"srs.log_77.2020-01-0{number}.1"
    path.write_bytes(b"y" * size)
    os.utime(path, (1000000 + number, 1000000 + number))
    return path.name


def test_the_oldest_rolled_logs_are_deleted_by_number(roll: Callable[[str], Process], tmp_path: Path) -> None:
    names = [earlier(tmp_path, number, 10) for number in range(1, 6)]
    (tmp_path / "srs.log_of_somebody").write_text("not a rolled one")
    process = roll("size='1' max-history='3'")
    until(lambda: len(rolled(tmp_path)) == 4)
    kept = rolled(tmp_path)
    assert kept[-1] == "srs.log_of_somebody" and set(names[-2:]) < set(kept)
    assert any(name.startswith(f"srs.log_{process.pid}.") for name in kept)


def test_the_oldest_rolled_logs_are_deleted_by_their_sum(roll: Callable[[str], Process], tmp_path: Path) -> None:
    names = [earlier(tmp_path, number, 600000) for number in range(1, 6)]
    roll("size='1' total-size-cap='2'")  # the one just rolled and one more
    until(lambda: len(rolled(tmp_path)) == 2)
    assert names[-1] in rolled(tmp_path)


def test_lines_have_date_severity_and_identifier(start: Start) -> None:
    process, port = start()
    SrsClient(port, 0x8295AB9A).join().close()
    line = r"^[A-Z][a-z]{2} [A-Z][a-z]{2} \d{1,2} \d\d:\d\d:\d\d \S+ \d{4} \[INFO\]: SRS-10385-99: "
    process.expect(line + r"TCP Disconnect received for client\[127\.0\.0\.1:\d+\] sessionID\[0x8295ab9a\]$")
    assert process.output.count("SRS-10385-98: Registration protocolVersion[1] received for client[127.0.0.1:") == 1
