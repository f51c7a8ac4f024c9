"""The daemon lbmrd as a program: command line, configuration file, log, a thousand clients, two daemons of which one is
killed again and again."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from figures import record
from hosts import Host, Process, program

ROOT = Path(__file__).resolve().parents[2]
FILES = [ROOT / "examples" / "config" / name for name in ("lbmrd.xml", "lbmrd_nat.xml")]
FULL = bool(os.environ.get("UM_SOAK"))
Config = Callable[..., str]


def lbmrd(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [program("lbmrd"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def changed(tmp_path: Path, old: str, new: str) -> Path:
    """The example with something else written in one place."""
    text = FILES[1].read_text()
    assert old in text
    path = tmp_path / "changed.xml"
    path.write_text(text.replace(old, new))
    return path


# ---- command line and file ----


@pytest.mark.skipif(shutil.which("xmllint") is None, reason="xmllint is not installed (libxml2-utils)")
@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.name))
def test_the_dumped_dtd_validates_the_examples(tmp_path: Path, file: Path) -> None:
    dumped = lbmrd("--dump-dtd")
    assert dumped.returncode == 0 and dumped.stderr == ""
    dtd = tmp_path / "lbmrd.dtd"
    dtd.write_text(dumped.stdout)
    subprocess.run(["xmllint", "--noout", "--dtdvalid", dtd, file], check=True)
    wrong = changed(tmp_path, "transformations>", "translations>")
    assert subprocess.run(["xmllint", "--noout", "--dtdvalid", dtd, wrong], check=False).returncode != 0


def test_validation_says_yes_to_the_examples(tmp_path: Path) -> None:
    for file in FILES:
        done = lbmrd("-v", file)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{file}: valid\n", "")


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("<port>12000</port>", "<port>70000</port>", ("line 8", 'port "70000"', "from 1 to 65535")),
        ('name="Net-NJC"', 'name="Net-NYC"', ("line 14", "Net-NYC already defined")),
        ('destination="Net-NJC"', 'destination="Net-LDN"', ("Net-LDN",)),
        ("<network>10.1.0.0/16</network>", "<network>host.dom</network>", ("line 12", 'network "host.dom"')),
        ("</lbmrd>", "", ("line 27", "not well-formed")),
    ],
)
def test_validation_says_no_where_and_why(tmp_path: Path, old: str, new: str, parts: tuple[str, ...]) -> None:
    file = changed(tmp_path, old, new)
    for arguments in (("-v", file), (file,)):  # the daemon does not start with it either
        done = lbmrd(*arguments)
        assert done.returncode == 1 and done.stdout == ""
        assert all(part in done.stderr for part in (str(file), *parts)), done.stderr


def test_validation_of_nothing_fails(tmp_path: Path) -> None:
    text = re.sub(r"<transformations>.*</transformations>", "", FILES[1].read_text(), flags=re.DOTALL)
    file = tmp_path / "half.xml"
    file.write_text(text)
    for arguments, part in (
        (("-v",), "name the configuration file"),
        (("-v", tmp_path / "none.xml"), "cannot be opened"),
        (("-v", file), "transformations"),
        ((FILES[0], FILES[1]), "one configuration file is read"),
    ):
        done = lbmrd(*arguments)
        assert done.returncode == 1 and part in done.stderr


def test_the_command_line_comes_before_the_file(host: Host, tmp_path: Path) -> None:
    file = tmp_path / "own.xml"
    log = tmp_path / "from file.log"
    start = FILES[0].read_text().replace("<port>15380</port>", f"<port>15999</port><log>{log}</log>")
    file.write_text(start)
    other = host.start("lbmrd", "-L", "/dev/stdout", "-p", 16000, file)
    other.expect(r"lbmrd started on 127\.0\.0\.1:16000$")
    assert not log.exists()
    daemon = host.start("lbmrd", file)
    end = time.monotonic() + 60
    while not (log.exists() and "lbmrd started on 127.0.0.1:15999" in log.read_text()):
        assert daemon.popen.poll() is None and time.monotonic() < end, daemon.output
        time.sleep(0.02)
    daemon.signal(signal.SIGINT)
    assert daemon.wait() == 0
    assert re.search(r"^\w{3} \w{3} \d+ [\d:]+ \S+ \d{4} \[INFO\]: Lbmrd-um-8: lbmrd ends: ", log.read_text(), re.M)


def test_the_manager_is_told_when_the_socket_is_open(host: Host, tmp_path: Path) -> None:
    """As systemd does with Type=notify: a socket of the file system that gets READY=1, and at the end STOPPING=1."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(tmp_path / "notify"))
        told.settimeout(60)
        daemon = host.start("lbmrd", "-i", "127.0.0.1", env={"NOTIFY_SOCKET": str(tmp_path / "notify")})
        assert told.recv(100) == b"READY=1"
        assert "lbmrd started" in daemon.output
        daemon.signal(signal.SIGTERM)
        assert told.recv(100) == b"STOPPING=1"
        assert daemon.wait() == 0


def test_a_log_that_was_moved_away_is_opened_anew(host: Host, tmp_path: Path) -> None:
    """What logrotate does: rename, then SIGHUP; where no new file can be made, the old one goes on."""
    log, moved = tmp_path / "lbmrd.log", tmp_path / "lbmrd.log.1"
    daemon = host.start("lbmrd", "-i", "127.0.0.1", "-L", str(log))
    wait_for_line(daemon, log, "lbmrd started on")
    log.rename(moved)
    daemon.signal(signal.SIGHUP)
    wait_for_line(daemon, log, "Lbmrd-um-14: log opened anew")
    log.unlink()
    log.mkdir()
    daemon.signal(signal.SIGHUP)
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    assert "lbmrd started on" in moved.read_text() and "lbmrd ends" not in moved.read_text()


def test_it_outlives_who_reads_its_log(host: Host) -> None:
    """A log on a pipe whose reader has gone: lines are lost, the service is not."""
    command = host.command(program("lbmrd"), "-i", "127.0.0.1")
    with subprocess.Popen(command, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout is not None
        while b"lbmrd started on" not in daemon.stdout.readline():
            pass
        daemon.stdout.close()
        daemon.send_signal(signal.SIGHUP)  # is a line, and then the end is one, too
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(60) == 0


def wait_for_line(daemon: Process, log: Path, text: str) -> None:
    end = time.monotonic() + 60
    while not (log.exists() and text in log.read_text()):
        assert daemon.popen.poll() is None and time.monotonic() < end, daemon.output
        time.sleep(0.02)


# ---- clients ----

CROWD = """
import select, socket, sys
ADDRESS, COUNT = ("127.0.0.1", 15380), 1000
sockets = []
for _ in range(COUNT):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(("127.0.0.1", 0))
    one.setblocking(False)
    sockets.append(one)
poller = select.epoll()
by_number = {one.fileno(): one for one in sockets}
for one in sockets:
    poller.register(one, select.EPOLLIN)


def gather(wanted, again):
    "Until each client has had these bytes; what is lost is asked for again."
    missing = set(by_number)
    while missing:
        again([by_number[number] for number in missing])
        while missing:
            ready = poller.poll(1)
            if not ready:
                break
            for number, _ in ready:
                if by_number[number].recv(2000) == wanted:
                    missing.discard(number)


gather(bytes(4), lambda late: [one.sendto(bytes((2, 0, 0, 0)), ADDRESS) for one in late])
print("clients", COUNT, flush=True)
question = bytes((0, 1, 0, 0)) + b"orders" + bytes(1)



def ask(late):
    "Those that have been silent for too long in the meantime are clients no longer."
    if len(late) < COUNT:
        for one in late:
            one.sendto(bytes((2, 0, 0, 0)), ADDRESS)
    sockets[0].sendto(question, ADDRESS)


gather(question, ask)
print("everybody has the question", flush=True)
"""


def test_a_thousand_clients_get_what_one_of_them_asks(host: Host) -> None:
    daemon = host.start("lbmrd", "-i", "127.0.0.1", "-t", 2, "-a", 500)
    daemon.expect("lbmrd started")
    crowd = host.start_command(sys.executable, "-c", CROWD)
    crowd.expect("everybody has the question", 120)
    crowd.finish()
    daemon.expect("removed after")  # -t 2 -a 500: they are silent now
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    sent = re.search(r"lbmrd ends: (\d+) datagrams received, (\d+) sent, 0 invalid", daemon.output)
    assert sent and int(sent.group(1)) >= 1001 and int(sent.group(2)) >= 2000


def test_one_of_two_daemons_is_killed_again_and_again(host: Host, loopback_config: Config) -> None:
    """Each time a receiver starts that finds its source all the same. How long that takes is shown in virtual time by
    tests/sim/lbmrd_sim.c; here it is recorded."""
    config = loopback_config("context resolver_unicast_daemon 127.0.0.1:15380,127.0.0.1:15381")
    host.start("lbmsrc", "-c", config, "-M", 100000000, "-P", 1, "-d", 0, "news")
    running: list[Process | None] = [None, None]

    def start(which: int) -> None:
        running[which] = host.start("lbmrd", "-i", "127.0.0.1", "-p", 15380 + which)

    start(0)
    start(1)
    worst = 0.0
    for round_number in range(20 if FULL else 4):
        which = round_number % 2
        daemon = running[which]
        assert daemon is not None
        daemon.expect("lbmrd started")
        daemon.expect("client .* added", 60)
        daemon.signal(signal.SIGKILL)
        daemon.wait()
        receiver = host.start("lbmrcv", "-c", config, "-r", 20, "news")
        begun = time.monotonic()
        receiver.expect("Beginning of Transport Session", 60)
        worst = max(worst, time.monotonic() - begun)
        receiver.expect(r"^Quitting\.\.\.\. received 20 messages$")
        start(which)
    record("one of two lbmrds killed: a new receiver hears its source after", f"{worst:.2f} s at most")
