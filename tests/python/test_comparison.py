"""Both sides of every row of the comparison run and print what the page says; servers they need run beside them."""

from __future__ import annotations

import re
import shutil
import sys

import pytest
from hosts import Host
from interpreter import ENV, ROOT, python

PAGE = ROOT / "docs" / "python" / "comparison.md"
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)
PROGRAMS = BLOCK.findall(PAGE.read_text())
SHOWN = [(code, output) for code, output in PROGRAMS if output]
NATS = ROOT / ".venv" / "brokers" / "nats-server"  # see tools/bootstrap.sh
PEERS = ("zmq", "nats", "redis", "confluent_kafka")


def peer_of(code: str) -> str | None:
    return next((name for name in PEERS if re.search(rf"^(import|from) {name}\b", code, re.MULTILINE)), None)


def start_server(host: Host, peer: str | None) -> None:
    """The server that clients of this library talk to, if there is one, on its usual port of the host."""
    if peer == "nats":
        if not NATS.exists():
            pytest.skip("no nats-server: tools/bootstrap.sh could not unpack it")
        host.start_command(str(NATS), "-a", "127.0.0.1").expect("Server is ready")
    elif peer == "redis":
        tools = shutil.which("redis-check-rdb")  # the server by another name, in a package that starts none
        if tools is None:
            pytest.skip("no redis-tools")
        arguments = ("--save", "", "--bind", "127.0.0.1", "--daemonize", "no")
        server = host.start_command("bash", "-c", 'exec -a redis-server "$0" "$@"', tools, *arguments)
        server.expect("Ready to accept connections")


@pytest.mark.parametrize("number", range(len(SHOWN)))
def test_the_program_prints_what_the_page_says(host: Host, number: int) -> None:
    code, output = SHOWN[number]
    peer = peer_of(code)
    if peer is not None:
        pytest.importorskip(peer)
        start_server(host, peer)
    # Only ours are under the sanitizers.
    command = [sys.executable, "-c", code] if peer is not None else python("-c", code)
    printed = host.start_command("sh", "-c", 'exec "$@" 2>/dev/null', "sh", *command, env=ENV).finish()
    assert printed == output


def test_what_does_not_run_is_kafka_only_and_the_page_says_so() -> None:
    not_run = [peer_of(code) for code, output in PROGRAMS if not output]
    assert not_run == ["confluent_kafka"] * 2
    assert "its two programs have only been through the type checker" in re.sub(r"\s+", " ", PAGE.read_text())


def test_every_side_is_there() -> None:
    peers = [peer_of(code) for code, _ in PROGRAMS]
    assert {name: peers.count(name) for name in (*PEERS, None)} == {
        "zmq": 4,
        "nats": 4,
        "redis": 1,
        "confluent_kafka": 2,
        None: 6,
    }
