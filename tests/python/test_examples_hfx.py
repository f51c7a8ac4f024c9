"""lbmhfxrcv and lbmhtrcv against sources; as in test_examples.py, nobody guesses how long others take."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hosts import Host

Config = Callable[..., str]
BEGIN = "Beginning of Transport Session"
WAITS = ("-d", 3600, "-L", 3600)  # until it is told to go on
SOURCE = r"TCP:127\.0\.0\.\d+:\d+:[0-9a-f]{8}\[\d+\]"


@pytest.mark.parametrize("more", [[], ["-q"], ["-I", "127.0.0.1/32", "-I", "127.0.0.1/32"]])
def test_lbmhfxrcv_gets_each_number_once(host: Host, loopback_config: Config, more: list[str]) -> None:
    config = loopback_config()
    receiver = host.start("lbmhfxrcv", "-c", config, "-S", "-v", "-V", "-s", 1, *more, "news")
    sources = [host.start("lbmhfsrc", "-c", config, *WAITS, "-V", "-M", 100, "-l", 40, "news") for _ in range(2)]
    paths = max(1, more.count("-I"))
    receiver.expect_times(BEGIN, 2 * paths)
    sources[0].go_on()
    receiver.expect(r"\[99\], 40 bytes$")
    sources[1].go_on()
    sources[1].stop_lingering()
    got = receiver.finish()
    sources[0].stop_lingering()
    shown = re.findall(rf"^(?:\[@[\d.]+\])?\[news\]\[{SOURCE}\]\[(\d+)\], 40 bytes$", got, re.M)
    assert shown == [str(number) for number in range(100)]
    assert "Messages received : 100\n" in got
    assert "does not verify" not in got and "Message sqn 0x63 verifies" in got
    assert ("Using an LBM event queue.\n" in got) == ("-q" in more)
    assert "source 1/" in got


def test_lbmhfxrcv_delivers_copies_as_they_arrive_on_request(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    receiver = host.start("lbmhfxrcv", "-c", config, "-a", "-d", "-r", 20, "-v", "news")
    sources = [host.start("lbmhfsrc", "-c", config, *WAITS, "-M", 10, "news") for _ in range(2)]
    receiver.expect_times(BEGIN, 2)
    sources[0].go_on()
    receiver.expect(r"\[9\], 25 bytes$")
    sources[1].go_on()
    got = receiver.finish()
    for source in sources:
        source.stop_lingering()
    assert len(re.findall(r"\]-HFDUP-, 25 bytes$", got, re.M)) == 10
    assert "Messages received : 20\n" in got


def test_lbmhtrcv_receives_what_patterns_match(host: Host, loopback_config: Config, tmp_path: Path) -> None:
    config = loopback_config()
    patterns = tmp_path / "patterns"
    patterns.write_text("a/*\na/>\n")
    receiver = host.start(
        "lbmhtrcv",
        *("-p", "top/", "-v", "-s", "-x", "-d", 3600000),
        env={"LBM_DEFAULT_CONFIG_FILE": config},
        prefix=f"exec < {patterns};",
    )
    receiver.expect("^2 patterns loaded$")
    sources = [
        host.start("lbmsrc", "-c", config, *WAITS, "-M", 5, topic) for topic in ("top/a/b", "top/a/b/c", "a/other")
    ]
    receiver.expect(rf"^\[top/a/b\]\[{SOURCE}\], {BEGIN} \(a/\*\)$")
    receiver.expect(rf"^\[top/a/b\]\[{SOURCE}\], {BEGIN} \(a/>\)$")
    receiver.expect(rf"^\[top/a/b/c\]\[{SOURCE}\], {BEGIN} \(a/>\)$")
    for source in sources:
        source.expect("^Will start sending")  # also the one that nobody hears
        source.go_on()
    for topic, pattern in (("top/a/b", r"a/\*"), ("top/a/b", "a/>"), ("top/a/b/c", "a/>")):
        receiver.expect(rf"\[{topic}\]\[{SOURCE}\]\[4\], 25 bytes \({pattern}\)$")
    receiver.go_on()
    receiver.expect(r"^1\. a/\* deletion complete \(thread=0\)$")
    receiver.go_on()
    got = receiver.finish()
    assert "2. a/> deletion complete (thread=0)\n" in got
    assert "other" not in got
    assert len(re.findall(r", 25 bytes \(", got)) == 15
    for source in sources:
        source.stop_lingering()


@pytest.mark.parametrize("name", ["lbmhfxrcv", "lbmhtrcv"])
def test_wrong_options_and_help_show_the_usage(host: Host, name: str) -> None:
    wrong = host.start(name, "-Z")
    assert wrong.wait() == 1
    assert "Usage: " in wrong.output
    helped = host.start(name, "-h")
    assert helped.wait() == 0
    assert helped.output.splitlines()[0].endswith(name)
