"""The sub-commands of `um`: publish, subscribe, ping, top, completion. Each runs in a host of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hosts import BUILD, Host, Process

ROOT = Path(__file__).resolve().parents[2]
ENV = {"PYTHONPATH": str(ROOT), "UM_BUILD_DIR": str(BUILD), "PYTHONUNBUFFERED": "1"}
SMALL = [f"resolver_{each}_receiver_socket_buffer=131072" for each in ("multicast", "unicast")]
LOOPBACK = ("-i", "127.0.0.1", "-o", SMALL[0], "-o", SMALL[1])

pytestmark = pytest.mark.skipif(bool(os.environ.get("UM_SANITIZED")), reason="the sanitizer would have to be preloaded")


def um(host: Host, command: str, *arguments: object, library: bool = True) -> Process:
    words = [sys.executable, "-m", "um_cffi", command, *map(str, arguments), *(LOOPBACK if library else ())]
    return host.start_command(*words, env=ENV)


def piped(host: Host, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = host.command(sys.executable, "-m", "um_cffi", *arguments, *LOOPBACK)
    return subprocess.run(
        words, input=text, capture_output=True, text=True, env={**os.environ, **ENV}, timeout=60, check=False
    )


def test_sub_prints_what_pub_sends(host: Host) -> None:
    receiver = um(host, "sub", "news", "-n", 3)
    assert "sent 3 messages" in um(host, "pub", "news", "one", "two", "three").finish()
    assert receiver.finish() == "one\ntwo\nthree\n"


def test_pub_repeats_at_a_rate_and_sub_shows_where_from(host: Host) -> None:
    receiver = um(host, "sub", "-v", "-n", 4, "news")
    um(host, "pub", "-n", 2, "-r", 50, "-q", "news", "a", "b").finish()
    lines = receiver.finish().splitlines()
    assert len(lines) == 4
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{6} news #0 a", lines[0])


def test_hexadecimal_goes_in_and_comes_out(host: Host) -> None:
    receiver = um(host, "sub", "--hex", "-n", 1, "raw")
    um(host, "pub", "--hex", "raw", "00ff7f80").finish()
    assert receiver.finish() == "00ff7f80\n"


def test_json_lines_of_sub_are_understood_by_pub(host: Host) -> None:
    receiver = um(host, "sub", "--json", "-p", "^in/", "-n", 3)
    lines = ['{"topic": "in/a", "data": "text"}', '{"topic": "in/b", "data_hex": "00ff"}', '{"x": 1}']
    done = piped(host, "\n".join(lines) + "\n", "pub", "in/c", "--json")
    assert done.returncode == 0, done.stderr
    got = sorted((json.loads(line) for line in receiver.finish().splitlines()), key=lambda each: str(each["topic"]))
    assert [each["topic"] for each in got] == ["in/a", "in/b", "in/c"]
    assert (got[0]["data"], got[1]["data_hex"], got[2]["data"]) == ("text", "00ff", '{"x": 1}')
    assert got[0]["source"].startswith("TCP:127.0.0.1:") and got[0]["sequence_number"] == 0


def test_events_are_shown_on_demand(host: Host) -> None:
    receiver = um(host, "sub", "-e", "--json", "news", "-t", 20, "-n", 2)
    um(host, "pub", "news", "one").finish()
    receiver.expect("END_OF_SESSION")
    assert re.search(r'"event": "BEGIN_OF_SESSION".*\n.*"data": "one"', receiver.output)


def test_a_missing_receiver_is_told_in_one_line(host: Host) -> None:
    sender = um(host, "pub", "-t", 0.2, "nobody", "one")
    assert sender.wait() == 1
    assert re.fullmatch(r"um pub: .*\n", sender.output), sender.output


def test_sub_that_gets_less_than_asked_for_fails(host: Host) -> None:
    assert um(host, "sub", "-n", 1, "-t", 0.2, "nobody").wait() == 1


def test_a_wrong_option_says_what_was_meant(host: Host) -> None:
    sender = um(host, "pub", "news", "one", "-o", "resolver_multicast_adress=1.2.3.4")
    assert sender.wait() == 1
    assert "did you mean resolver_multicast_address" in sender.output


def test_ping_measures_the_way_to_echo_and_back(host: Host) -> None:
    um(host, "ping", "--echo").expect("answering")
    output = um(host, "ping", "-n", 3, "--interval", 0.01).finish()
    assert len(re.findall(r"^64 bytes from um: number \d time [\d.]+ us$", output, re.MULTILINE)) == 3
    assert "3 sent, 3 answered, 0 lost" in output
    assert re.search(r"min/median/max = [\d.]+/[\d.]+/[\d.]+ us", output)


def test_ping_without_an_answer_fails(host: Host) -> None:
    asking = um(host, "ping", "-t", 0.3)
    assert asking.wait() == 1
    assert asking.output.startswith("um ping: ")


def test_top_shows_rates_of_each_topic_and_its_receivers(host: Host) -> None:
    um(host, "pub", "-n", 100000, "-r", 500, "a/fast", "x" * 100)
    um(host, "pub", "-n", 100000, "-r", 20, "a/slow", "y")
    rows = [
        json.loads(line) for line in um(host, "top", "--json", "-n", 6, "--interval", 0.5, "^a/").finish().splitlines()
    ]
    last = {row["topic"]: row for row in rows[-2:]}
    assert set(last) == {"a/fast", "a/slow"}
    assert last["a/fast"]["messages_per_s"] > last["a/slow"]["messages_per_s"] > 0
    assert [row["topic"] for row in rows[-2:]] == ["a/fast", "a/slow"]
    assert last["a/fast"]["receivers"] == 1 and last["a/fast"]["slow"] == 0 and last["a/fast"]["lost"] == 0


def test_top_in_plain_text(host: Host) -> None:
    um(host, "pub", "-n", 100000, "-r", 100, "news", "x")
    output = um(host, "top", "-n", 3, "--interval", 0.4).finish()
    assert re.search(r"^1 topics, 1 sources, .* msg/s, 0 lost$", output, re.MULTILINE)
    assert re.search(r"^news +TCP:127\.0\.0\.1:\d+.* live$", output, re.MULTILINE)


@pytest.mark.parametrize("transport", ["rm", "ru", "ipc", "smx"])
def test_pub_sub_and_ping_over_every_transport(host: Host, transport: str) -> None:
    receiver = um(host, "sub", "news", "-n", 3)
    lines = ["-n", 20, "-r", 10] if transport == "rm" else []  # multicast receivers may miss what comes first
    um(host, "pub", "-T", transport, *lines, "news", "one", "two", "three").finish()
    assert len(re.findall(r"^(?:one|two|three)$", receiver.finish(), re.MULTILINE)) == 3
    um(host, "ping", "--echo", "-T", transport)
    asking = um(host, "ping", "-n", 3, "--interval", 0.05, "-t", 20, "-T", transport)
    assert "3 sent, 3 answered, 0 lost" in asking.finish()


LOSING = """
import time
from um_cffi import Context, Receiver, Source
from um_cffi.testing import set_loss_rate
OPTIONS = {"default_interface": "127.0.0.1", "um_profile": "low_latency"}
with Context(OPTIONS) as sending, Context(OPTIONS) as good, Context(OPTIONS) as other:
    with Source(sending, "a/x", transport="lbtrm") as rm, Source(sending, "a/y", transport="lbtru") as ru:
        receivers = [Receiver(ctx, topic, lambda message: None) for topic in ("a/x", "a/y") for ctx in (good, other)]
        set_loss_rate(lbtrm=10, lbtru=10)
        while True:
            rm.send(bytes(100), flush=True)
            ru.send(bytes(100), flush=True)
            time.sleep(0.001)
"""


def test_s4_top_ranks_the_receivers_that_ask_for_repairs(host: Host) -> None:
    host.start_command(sys.executable, "-c", LOSING, env=ENV)
    output = um(host, "top", "--json", "-n", 6, "--interval", 0.5, "^a/").finish().splitlines()
    rows = [row for row in (json.loads(line) for line in output if line.startswith("{")) if "naks" in row]
    last = [row for row in rows if row["time"] > rows[-1]["time"] - 0.25]
    assert {row["source"].split(":")[0] for row in last} == {"LBTRM", "LBT-RU"}
    assert len({row["receiver"] for row in last}) >= 4
    assert all(row["naks"] > 0 for row in last)
    rates = [row["naks_per_s"] for row in last]
    assert rates == sorted(rates, reverse=True) and rates[0] > 0


def test_top_finds_the_receiver_that_does_not_keep_up(tmp_path: Path) -> None:
    from um_cffi.commands import top

    table = tmp_path / "tcp"
    table.write_text(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n"
        "   0: 0100007F:3823 00000000:0000 0A 00000000:00000000 00:00000000\n"
        "   1: 0100007F:3823 0100007F:9C40 01 00000000:00000000 00:00000000\n"
        "   2: 0100007F:3823 0100007F:9C42 01 00040000:00000000 00:00000000\n"
    )
    assert top.clients(str(table)) == {"127.0.0.1:14371": [0, 262144]}


def test_module_prints_versions_features_and_paths(host: Host) -> None:
    output = host.start_command(sys.executable, "-m", "um_cffi", env=ENV).finish()
    for pattern in (
        r"^libum +0\.1\.0$",
        r"^feature: transport TCP +yes$",
        r"^library +/.*libum\.so\.0$",
        r"^programs .*lbmrd",
    ):
        assert re.search(pattern, output, re.MULTILINE), output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_every_command_and_option(host: Host, shell: str, tmp_path: Path) -> None:
    script = um(host, "completion", shell, library=False).finish()
    for word in ("pub", "sub", "ping", "top", "doctor", "completion", "interval", "rate", "echo"):
        assert word in script
    if shutil.which(shell):
        path = tmp_path / "script"
        path.write_text(script)
        subprocess.run([shell, "-n", str(path)], check=True)


def test_bash_completes_commands_and_options(host: Host) -> None:
    script = um(host, "completion", "bash", library=False).finish()
    ask = 'COMP_WORDS=({words}); COMP_CWORD={at}; _um; echo "${{COMPREPLY[*]}}"'
    for words, at, expected in (
        ("um do", 1, "doctor"),
        ("um top --int", 2, "--interval --interface"),
        ("um completion f", 2, "fish"),
    ):
        line = script + ask.format(words=words, at=at)
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
        assert sorted(done.stdout.split()) == sorted(expected.split())
