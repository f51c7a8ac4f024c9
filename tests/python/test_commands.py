"""The sub-commands of `um`: publish, subscribe, ping, top, completion. Each runs in a host of its own."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hosts import SLOW, Host, Process
from interpreter import ENV, needs_plain_library, python, without_library
from zsh_completion import Zsh

ROOT = Path(__file__).resolve().parents[2]
SMALL = [f"resolver_{each}_receiver_socket_buffer=131072" for each in ("multicast", "unicast")]
LOOPBACK = ("-i", "127.0.0.1", "-o", SMALL[0], "-o", SMALL[1])
PATIENT = ("-t", "120")  # the default times out when the other side is late
ENDLESS = ("-n", 1000000)  # until the host is closed

Row = dict[str, Any]


def um(host: Host, command: str, *arguments: object, library: bool = True) -> Process:
    patience = PATIENT if command in ("pub", "ping") and "-t" not in arguments else ()
    words = python("-m", "um_cffi", command, *patience, *arguments, *(LOOPBACK if library else ()))
    return host.start_command(*words, env=ENV)


def tables(process: Process) -> list[list[Row]]:
    """What `um top --json` has printed so far, but for the table that may be under way. Its rows have one time."""
    complete = process.output[: process.output.rfind("\n") + 1]
    rows = map(json.loads, (line for line in complete.splitlines() if line.startswith("{")))
    return [list(group) for _, group in itertools.groupby(rows, lambda row: row["time"])][:-1]


def until_a_table(process: Process, wanted: Callable[[list[Row]], bool]) -> list[list[Row]]:
    """Wait for a table with these rows; all tables so far. An interval may be one in which its sources were late."""
    end = time.monotonic() + 60 * SLOW
    while not any(map(wanted, tables(process))):
        assert time.monotonic() < end and process.popen.poll() is None, process.output[-4000:]
        time.sleep(0.1)
    return tables(process)


def piped(host: Host, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = host.command(*python("-m", "um_cffi", *arguments, *LOOPBACK))
    return subprocess.run(
        words, input=text, capture_output=True, text=True, env={**os.environ, **ENV}, timeout=60 * SLOW, check=False
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
    done = piped(host, "\n".join(lines) + "\n", "pub", *PATIENT, "in/c", "--json")
    assert done.returncode == 0, done.stderr
    got = sorted((json.loads(line) for line in receiver.finish().splitlines()), key=lambda each: str(each["topic"]))
    assert [each["topic"] for each in got] == ["in/a", "in/b", "in/c"]
    assert (got[0]["data"], got[1]["data_hex"], got[2]["data"]) == ("text", "00ff", '{"x": 1}')
    assert got[0]["source"].startswith("TCP:127.0.0.1:") and got[0]["sequence_number"] == 0


PDM_MESSAGES = """
from um_cffi import pdm
inner = pdm.Definition.from_schema({"flag": "BOOLEAN"}, id=8)
trade = pdm.Definition.from_schema(
    {"symbol": "FIX_STRING(8)", "price": "DECIMAL", "note": "STRING?", "raw": "BLOB?", "sub": "MESSAGE?"}, id=7
)
nested = inner.message(flag=True)
nested.include_definition = True
message = trade.message(symbol="IBM", price=pdm.Decimal(1915, -1), raw=b"\\x00\\xff", sub=nested)
message.include_definition = True
messages = [message, trade.message(symbol="A\\nB", price=pdm.Decimal(2, 0)), inner.message(flag=False)]
other = pdm.Definition.from_schema({"x": "INT32"}, id=9).message(x=1)
print(*(each.to_bytes().hex() for each in (trade, *messages, other)))
"""


def pdm_messages(host: Host) -> tuple[bytes, list[str]]:
    """A definition, and messages as hexadecimal digits: with it, without it, of another, and none."""
    definition, *messages = host.start_command(*python("-c", PDM_MESSAGES), env=ENV).finish().split()
    return bytes.fromhex(definition), [*messages, "6e6f6e65"]


def test_fields_of_pre_defined_messages_are_printed(host: Host) -> None:
    receiver = um(host, "sub", "--pdm", "-n", 5, "trades")
    um(host, "pub", "--hex", "trades", *pdm_messages(host)[1]).finish()
    lines = receiver.finish().splitlines()
    assert lines[:2] == [
        'symbol="IBM" price="191.5" raw="00ff" sub={"flag": true}',
        'symbol="A\\nB" price="2"',
    ]
    assert re.fullmatch(r"\[no definition 8 1.0 is known\] [0-9a-f]+", lines[2])
    assert lines[4] == "[not a valid message: shorter than its header] 6e6f6e65"


def test_definitions_of_pre_defined_messages_are_in_files(host: Host, tmp_path: Path) -> None:
    definition, messages = pdm_messages(host)
    file = tmp_path / "trade.pdm"
    file.write_bytes(definition)
    receiver = um(host, "sub", "--pdm", "--json", "--definition", file, "-n", 2, "trades")
    um(host, "pub", "--hex", "trades", messages[1], messages[3]).finish()
    first, second = map(json.loads, receiver.finish().splitlines())
    assert first["fields"] == {"symbol": "A\nB", "price": "2"} and "data_hex" not in first
    assert second["error"] == "no definition 9 1.0 is known" and second["data_hex"] == messages[3]
    file.write_bytes(b"none")
    for wrong in (["--pdm", "--definition", file], ["--definition", file], ["--pdm", "--hex"]):
        refused = um(host, "sub", *wrong, "trades")
        assert refused.wait() == 1 and re.fullmatch(r"um sub: .*\n", refused.output), refused.output


def test_events_are_shown_on_demand(host: Host) -> None:
    receiver = um(host, "sub", "-e", "--json", "news", "-n", 2)
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
    sender = um(host, "pub", "news", "one", "-o", "transprt=lbtrm")
    assert sender.wait() == 1 and "did you mean transport" in sender.output


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
    um(host, "pub", *ENDLESS, "-r", 500, "a/fast", "x" * 100)
    um(host, "pub", *ENDLESS, "-r", 20, "a/slow", "y")
    top = um(host, "top", "--json", *ENDLESS, "--interval", 0.5, "^a/")

    def complete(table: list[Row]) -> bool:
        found = {row["topic"]: row for row in table}
        if set(found) != {"a/fast", "a/slow"} or any(row["receivers"] != 1 for row in table):
            return False
        return bool(found["a/fast"]["messages_per_s"] > found["a/slow"]["messages_per_s"] > 0)

    for table in until_a_table(top, complete):
        rates = [row["messages_per_s"] for row in table]
        assert rates == sorted(rates, reverse=True)
        assert all(row["slow"] == 0 and row["lost"] == 0 for row in table)


def test_top_in_plain_text(host: Host) -> None:
    um(host, "pub", *ENDLESS, "-r", 100, "news", "x")
    top = um(host, "top", *ENDLESS, "--interval", 0.4)
    top.expect(r"^1 topics, 1 sources, .* msg/s, 0 lost$")
    top.expect(r"^news +TCP:127\.0\.0\.1:\d+.* live$")


def test_top_ends_after_so_many_tables(host: Host) -> None:
    um(host, "pub", *ENDLESS, "-r", 100, "news", "x")
    output = um(host, "top", "-n", 3, "--interval", 0.1).finish()
    assert len(re.findall(r"^\d topics, \d sources, ", output, re.MULTILINE)) == 3


@pytest.mark.parametrize("transport", ["rm", "ru", "ipc", "smx"])
def test_pub_sub_and_ping_over_every_transport(host: Host, transport: str) -> None:
    receiver = um(host, "sub", "news", "-n", 3)
    # Multicast receivers may miss what comes first.
    lines = (*ENDLESS, "-r", 10) if transport == "rm" else ()
    um(host, "pub", "-T", transport, *lines, "news", "one", "two", "three")
    assert len(re.findall(r"^(?:one|two|three)$", receiver.finish(), re.MULTILINE)) == 3
    um(host, "ping", "--echo", "-T", transport)
    asking = um(host, "ping", "-n", 3, "--interval", 0.05, "-T", transport)
    assert "3 sent, 3 answered, 0 lost" in asking.finish(120)


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
    host.start_command(*python("-c", LOSING), env=ENV)
    top = um(host, "top", "--json", *ENDLESS, "--interval", 0.5, "^a/")

    def asking(table: list[Row]) -> list[Row]:
        return [row for row in table if "naks" in row]

    def complete(table: list[Row]) -> bool:
        rows = asking(table)
        sessions = {row["source"].split(":")[0] for row in rows}
        four = len({row["receiver"] for row in rows}) >= 4
        return four and sessions == {"LBTRM", "LBT-RU"} and rows[0]["naks_per_s"] > 0

    for rows in map(asking, until_a_table(top, complete)):
        rates = [row["naks_per_s"] for row in rows]
        assert rates == sorted(rates, reverse=True)
        assert all(row["naks"] > 0 for row in rows)


@needs_plain_library
def test_top_finds_the_receiver_that_does_not_keep_up(tmp_path: Path) -> None:
    from um_cffi.commands import _top as top

    table = tmp_path / "tcp"
    table.write_text(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n"
        "   0: 0100007F:3823 00000000:0000 0A 00000000:00000000 00:00000000\n"
        "   1: 0100007F:3823 0100007F:9C40 01 00000000:00000000 00:00000000\n"
        "   2: 0100007F:3823 0100007F:9C42 01 00040000:00000000 00:00000000\n"
    )
    assert top.clients(str(table)) == {"127.0.0.1:14371": [0, 262144]}


@without_library
def test_lines_are_written_whole_where_python_is_unbuffered() -> None:
    """Or the log, which another thread writes, may part a line of JSON from its end."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # keeps the bounds of writes
    with ours, theirs:
        ours.settimeout(60 * SLOW)
        words = python("-m", "um_cffi", "completion", "option", "transport_tcp_port_high")
        subprocess.run(words, stdout=theirs.fileno(), env={**os.environ, **ENV}, check=True)
        theirs.close()
        writes = list(iter(lambda: ours.recv(1 << 16), b""))
    assert writes and all(each.endswith(b"\n") for each in writes)


def test_module_prints_versions_features_and_paths(host: Host) -> None:
    output = host.start_command(*python("-m", "um_cffi"), env=ENV).finish()
    for pattern in (
        r"^libum +0\.1\.0$",
        r"^feature: transport TCP +yes$",
        r"^library +/.*libum\.so\.0$",
        r"^programs .*lbmrd",
    ):
        assert re.search(pattern, output, re.MULTILINE), output


@without_library
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_every_command_and_option(host: Host, shell: str, tmp_path: Path) -> None:
    script = um(host, "completion", shell, library=False).finish()
    for word in ("pub", "sub", "ping", "top", "doctor", "completion", "interval", "rate", "echo"):
        assert word in script
    if shutil.which(shell):
        path = tmp_path / "script"
        path.write_text(script)
        subprocess.run([shell, "-n", str(path)], check=True)


@without_library
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


COMPLETED = (
    ("um do", ["doctor"]),
    ("um top --int", ["--interface", "--interval"]),
    ("um completion f", ["fish"]),
    ("um completion ", ["bash", "fish", "zsh"]),
    ("um pub -T r", ["rm", "ru"]),
    ("um top --sort ", ["bytes", "lost", "messages", "rate", "topic"]),
    ("um sub --pd", ["--pdm"]),
    ("um sub --de", ["--definition"]),
    ("um sub -o transport_tcp_port_l", ["transport_tcp_port_low="]),
    ("um pub -o source.transport=lbtr", [f"source.transport=lbtr{each}" for each in ("dma", "m", "u")]),
)


@pytest.fixture(name="shell_env")
def environment_of_a_shell(tmp_path: Path) -> dict[str, str]:
    """Of a shell that finds the command um, and nothing of the user's."""
    command = tmp_path / "bin" / "um"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.join(python("-m", "um_cffi"))} "$@"\n')
    command.chmod(0o755)
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    return {**os.environ, **ENV, **home, "PATH": f"{command.parent}:{os.environ['PATH']}"}


@without_library
@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish")
def test_fish_completes_commands_options_and_values(shell_env: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "um.fish"
    script.write_bytes(
        subprocess.run(["um", "completion", "fish"], capture_output=True, check=True, env=shell_env).stdout
    )
    for line, expected in COMPLETED:
        done = subprocess.run(
            ["fish", "-c", "source $argv[1]; complete -C $argv[2]", str(script), line],
            capture_output=True,
            text=True,
            check=True,
            env=shell_env,
        )
        assert sorted(each.split("\t")[0] for each in done.stdout.splitlines()) == expected, done.stderr


@without_library
@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
@pytest.mark.parametrize("way", ["eval", "file"])
def test_zsh_completes_commands_options_and_values(shell_env: dict[str, str], tmp_path: Path, way: str) -> None:
    """Where completion has not been set up, and as a file in a folder of $fpath."""
    load = 'eval "$(um completion zsh)"'
    if way == "file":
        folder = tmp_path / "functions"
        folder.mkdir()
        load = f"um completion zsh >{folder}/_um; fpath=({folder} $fpath); autoload -Uz compinit; compinit -u"
    with Zsh(tmp_path, load, shell_env, 30 * SLOW) as shell:
        for line, expected in COMPLETED:
            assert shell.complete(line) == expected, line


def test_pub_takes_its_arguments_in_any_order(host: Host) -> None:
    receiver = um(host, "sub", "news", "-n", 4)
    assert "sent 4 messages" in um(host, "pub", "news", "-n", 2, "one", "-r", 100, "two").finish()
    assert receiver.finish() == "one\ntwo\n" * 2


@without_library
@pytest.mark.parametrize(
    "wrong",
    [("-r", "-1"), ("-r", "nan"), ("-r", "inf"), ("-n", "0"), ("-n", "-3"), ("-w", "-1"), ("-t", "nan"), ("-t", "x")],
)
def test_pub_refuses_rates_and_counts_that_make_no_sense(host: Host, wrong: tuple[str, str]) -> None:
    done = um(host, "pub", *wrong, "news", "x")
    assert done.wait() == 2 and f"argument {wrong[0]}" in done.output


@pytest.mark.parametrize("transport", ["tcp", "rm", "ipc"])
def test_ping_uses_the_transport_both_ways(host: Host, transport: str) -> None:
    """The side that answers was told nothing of a transport."""
    um(host, "ping", "--echo").expect("answering")
    output = um(host, "ping", "-n", 2, "--interval", 0.01, "-T", transport).finish(120)
    name = {"tcp": "tcp", "rm": "lbtrm", "ipc": "lbtipc"}[transport]
    assert f"2 sent, 2 answered, 0 lost, over {name} both ways" in output


def test_top_fits_eighty_columns_and_says_what_it_leaves_out(host: Host) -> None:
    long = "market/data/europe/equities/with/a/very/long/name/of/a/topic"
    for number in range(3):
        um(host, "pub", *ENDLESS, "-r", 20, f"{long}/{number}", "x")
    words = python("-m", "um_cffi", "top", *ENDLESS, "--interval", 0.5, "-l", 2, *LOOPBACK)
    narrow = host.start_command(*words, env={**ENV, "COLUMNS": "80"})
    narrow.expect(r"^not shown: 1 more rows \(--lines\); names of 2 rows cut \(--wide\)$", 60)
    tables_only = [line for line in narrow.output.splitlines() if line.startswith(("topic  ", "market", "not shown"))]
    assert max(map(len, tables_only)) <= 80
    wide = um(host, "top", *ENDLESS, "--interval", 0.5, "--wide")
    wide.expect(f"^{long}/0 ", 60)
    assert "cut" not in wide.output


def test_topics_are_listed_without_joining(host: Host) -> None:
    publishers = [
        um(host, "pub", "-w", 0, *ENDLESS, "-r", 10, "prices/one", "x"),
        um(host, "pub", "-T", "ipc", "-w", 0, *ENDLESS, "-r", 10, "prices/two", "x"),
    ]
    there = {("prices/one", "tcp"), ("prices/two", "lbtipc")}
    found: list[tuple[str, str]] = []
    while set(found) < there:  # a listing may end before a publisher has answered
        for publisher in publishers:
            assert publisher.popen.poll() is None, publisher.output
        listing = um(host, "topics", "--json", "-t", 4 * SLOW, "^prices")
        listing.wait()
        rows = [json.loads(line) for line in listing.output.splitlines() if line.startswith("{")]
        found = [(row["topic"], row["transport"]) for row in rows]
    assert found == sorted(there)
    for _ in range(10):
        listing = um(host, "topics", "-t", 4 * SLOW)
        if listing.wait() == 0 and "2 topics, 2 sources" in listing.output:
            break
    assert "2 topics, 2 sources" in listing.output
    assert all(publisher.popen.poll() is None for publisher in publishers)
    nothing = um(host, "topics", "-t", 0.1, "^none")
    assert nothing.wait() == 1


@without_library
def test_completion_of_option_names_and_values(host: Host) -> None:
    def words(beginning: str) -> list[str]:
        return um(host, "completion", "option", beginning, library=False).finish().split()

    assert "transport_tcp_port_low=" in words("transport_tcp_po")
    assert words("source.transpor")[:1] == ["source.transport="] and "source." in words("sou")
    assert words("source.transport=lbtr") == [
        "source.transport=lbtrm",
        "source.transport=lbtru",
        "source.transport=lbtrdma",
    ]
    assert words("transport_tcp_nodelay=") == ["transport_tcp_nodelay=0", "transport_tcp_nodelay=1"]
    assert words("nonsense=") == []
