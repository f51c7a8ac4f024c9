"""The example programs of hot failover and of channels, against each other.

As in test_examples.py: a program delays and lingers until SIGALRM ends its wait (Process.go_on).
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hosts import Host, Process, without_log

Config = Callable[..., str]
BEGIN = "Beginning of Transport Session"
WAITS = ("-d", 3600, "-L", 3600)  # until it is told to go on
SOURCE = r"TCP:127\.0\.0\.1:\d+:[0-9a-f]{8}\[\d+\]"
GAPS = "10 11 12 13 25 26 38"
OPTIONAL = "10, 11, 12, 13o, 14o, 15 # as in the guide\n16o 17o 18o 19o 20\n"
PROGRAMS = ("lbmhfsrc", "lbmhfrcv", "lbmhfrcvq")


def shown(output: str, topic: str = "news") -> list[str]:
    """Numbers and flags of the messages that a receiver printed: "13-HF32-HFOPT"."""
    found = re.findall(rf"\[{topic}\]\[{SOURCE}\]\[(\d+)\](\S*), \d+ bytes$", output, re.M)
    return [number + flags for number, flags in found]


def failover_sources(host: Host, config: str, receivers: Sequence[Process], *arguments: object) -> list[Process]:
    """Two sources that the receivers have found, and that wait."""
    sources = [host.start("lbmhfsrc", "-c", config, *WAITS, *arguments, "news") for _ in range(2)]
    for receiver in receivers:
        receiver.expect_times(BEGIN, 2)
    return sources


def one_after_the_other(sources: Sequence[Process], receiver: Process, last: str) -> str:
    """What the receiver (-E) printed: the second source sends when all of the first has come, and its end comes behind
    its messages."""
    sources[0].go_on()
    receiver.expect(last)
    sources[1].go_on()
    sources[1].stop_lingering()
    got = receiver.finish()
    sources[0].stop_lingering()
    return got


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "numbers.txt"
    path.write_text(text)
    return str(path)


def test_gaps_of_the_numbers_delay_nothing_and_each_comes_once(
    host: Host, loopback_config: Config, tmp_path: Path
) -> None:
    config = loopback_config()
    receiver = host.start("lbmhfrcv", "-c", config, "-E", "-v", "news")
    sources = failover_sources(host, config, [receiver], "-t", written(tmp_path, GAPS))
    got = one_after_the_other(sources, receiver, r"\[38\]-HF32, 25 bytes$")
    assert shown(got) == [f"{number}-HF32" for number in GAPS.split()]
    assert "LOST" not in got
    assert "Sending 10000000 messages of size 25 bytes to topic [news]\n" in sources[0].output
    assert "Sent 7 messages of size 25 bytes in " in sources[0].output


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [(1, "10 11 12 13o 14o 15 16o 17o 18o 19o 20"), (0, "10 11 12 15 20")],
)
def test_optional_messages_come_if_wanted(
    host: Host, loopback_config: Config, tmp_path: Path, wanted: int, expected: str
) -> None:
    config = loopback_config(f"receiver hf_optional_messages {wanted}")
    receiver = host.start("lbmhfrcv", "-c", config, "-E", "-v", "news")
    sources = failover_sources(host, config, [receiver], "-t", written(tmp_path, OPTIONAL))
    got = one_after_the_other(sources, receiver, r"\[20\]-HF32, 25 bytes$")
    assert shown(got) == [re.sub("o$", "-HF32-HFOPT", n) if n[-1] == "o" else f"{n}-HF32" for n in expected.split()]
    assert "LOST" not in got


def test_a_source_that_dies_is_missed_by_nobody(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    receiver = host.start("lbmhfrcv", "-c", config, "-r", 400, "-v", "-V", "news")
    sources = failover_sources(host, config, [receiver], "-V", "-M", 400, "-P", 2)
    for source in sources:
        source.go_on()
    receiver.expect(r"\[50\]-HF32, 25 bytes$")
    sources[0].signal(signal.SIGKILL)
    got = receiver.finish()
    sources[1].stop_lingering()
    assert shown(got) == [f"{number}-HF32" for number in range(400)]
    assert re.findall(r"^Message sqn (\d+) verifies$", got, re.M) == [str(number) for number in range(400)]
    assert "does not verify" not in got
    assert "Quitting.... received 400 messages\n" in got
    assert re.search("^Messages received : 400$", got, re.MULTILINE)


def test_numbers_of_64_bits_and_those_that_begin_anew(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    wide = host.start("lbmhfrcv", "-c", config, "-E", "-v", "news")
    sources = failover_sources(host, config, [wide], "-x", 64, "-i", "0xfffffffe", "-M", 4)
    got = one_after_the_other(sources, wide, r"\[4294967297\]-HF64, 25 bytes$")
    assert shown(got) == [f"{number}-HF64" for number in range(4294967294, 4294967298)]
    narrow = host.start("lbmhfrcv", "-c", config, "-E", "-A", "-A", "-d", 1, "news")
    sources = failover_sources(host, config, [narrow], "-i", 4294967294, "-M", 4, "-P", 1)
    got = one_after_the_other(sources, narrow, "^message 1")
    assert re.findall(r"^message (\d+)", got, re.M) == ["4294967294", "4294967295", "0", "1"]


def test_a_reset_lets_lower_numbers_through(host: Host, loopback_config: Config, tmp_path: Path) -> None:
    config = loopback_config()
    receiver = host.start("lbmhfrcv", "-c", config, "-E", "-v", "news")
    source = host.start("lbmhfsrc", "-c", config, *WAITS, "-t", written(tmp_path, "99 100 1 2 1r 1 2 3"), "news")
    receiver.expect(BEGIN)
    source.go_on()
    source.stop_lingering()
    got = receiver.finish()
    assert shown(got) == [f"{number}-HF32" for number in (99, 100, 1, 2, 3)]
    assert re.search(rf"^\[news\]\[{SOURCE}\]\[1\]-HF32-RESET$", got, re.M)


def test_lbmhfrcvq_shows_copies_when_it_is_told_to(host: Host, loopback_config: Config) -> None:
    config = loopback_config("receiver hf_duplicate_delivery 1")
    receivers = [
        host.start("lbmhfrcvq", "-c", config, "-S", "-s", "-v", "-V", "news"),
        host.start("lbmrcv", "-c", config, "-f", "-S", "-v", "news"),
    ]
    sources = failover_sources(host, config, receivers, "-V", "-M", 5, "-l", 40)
    sources[0].go_on()
    for receiver in receivers:
        receiver.expect(r"\[4\], 40 bytes$")
    sources[1].go_on()
    sources[1].stop_lingering()
    receivers[1].expect("^Avg. throughput")
    receivers[1].go_on()  # lbmrcv waits at its end
    for receiver in receivers:
        got = receiver.finish()
        assert shown(got) == [f"{number}{copy}" for copy in ("", "-HFDUP-") for number in range(5)]
        assert re.search("^Messages received : 10$", got, re.MULTILINE)
    assert len(re.findall(r"^Message sqn 0x[0-4] verifies$", receivers[0].output, re.M)) == 10
    assert "Using Hot Failover.\n" in receivers[1].output
    sources[0].stop_lingering()


def test_two_lbmstrm_are_one_stream_to_a_wildcard(host: Host, loopback_config: Config) -> None:
    config = loopback_config("wildcard_receiver hf_receiver 1", "source late_join 1")
    receiver = host.start("lbmwrcv", "-c", config, "-r", 90, "-v", r"^Market\.\d$")
    receiver.expect("^Creating wildcard receiver")
    arguments = ("-H", "-x", 64, "-S", 3, "-T", 2, "-r", "Market", "-m", 1000, "-j", 100000, "-L", 3600)
    sources = [host.start("lbmstrm", "-c", config, *arguments, "-M", count) for count in (60, 90)]
    got = receiver.finish()
    for number in range(3):
        numbers = re.findall(rf"\[Market\.{number}\]\[{SOURCE}\]\[(\d+)\](?:-RX)?(?:-HF64), 25 bytes$", got, re.M)
        assert sorted(map(int, numbers)) == list(range(len(numbers)))
        assert len(numbers) >= 20
    for source in sources:
        source.stop_lingering()


def test_a_file_with_something_else_is_named(host: Host, loopback_config: Config, tmp_path: Path) -> None:
    arguments = ("-c", loopback_config(), "-d", 0, "-L", 0)
    process = host.start("lbmhfsrc", *arguments, "-t", written(tmp_path, "1 2 4294967296"), "news")
    assert process.wait() == 1
    assert 'cannot use "4294967296": a number of 32 bits is wanted' in process.output
    process = host.start("lbmhfsrc", *arguments, "-t", str(tmp_path / "none"), "news")
    assert process.wait() == 1
    assert "No such file or directory" in process.output
    assert host.start("lbmhfsrc", *arguments, "-x", 33, "news").wait() == 1


# ---- channels ----


def test_lbmrcv_shows_the_channel_and_listens_to_one(host: Host, loopback_config: Config) -> None:
    """The source of another channel has sent all when that of channel 7 sends: one TCP session each."""
    config = loopback_config("receiver unrecognized_channel_behavior discard", "receiver null_channel_behavior discard")
    receivers = [
        host.start("lbmrcv", "-c", config, "-N", 7, "-r", 5, "-v", "news"),
        host.start("lbmwrcv", "-c", config, "-N", 7, "-r", 5, "-v", "^news$"),
    ]
    receivers[0].expect("^Listening for messages on channel 7$")
    other = host.start("lbmsrc", "-c", config, *WAITS, "-N", 4294967295, "-M", 5, "news")
    source = host.start("lbmsrc", "-c", config, *WAITS, "-N", 7, "-M", 5, "-n", "news")
    for receiver in receivers:
        receiver.expect_times(BEGIN, 2)
    other.go_on()
    other.stop_lingering()
    for receiver in receivers:
        receiver.expect("End of Transport Session")
    source.go_on()
    receivers[0].expect("^Avg. throughput")
    receivers[0].go_on()
    for receiver in receivers:
        numbers = re.findall(rf"\[news:(\d+)\]\[{SOURCE}\]\[(\d+)\], 25 bytes$", receiver.finish(), re.M)
        assert numbers == [("7", str(number)) for number in range(5)]
    source.stop_lingering()
    assert "Sending on channel 4294967295\nSending 5 messages of size 25 bytes to topic [news]\n" in without_log(
        other.output
    )


@pytest.mark.parametrize("channel", ["-1", "4294967296", "seven"])
def test_channels_that_there_are_not_are_refused(host: Host, channel: str) -> None:
    process = host.start("lbmsrc", "--channel", channel, "news")
    assert process.wait() == 1
    assert f'cannot use "{channel}" for option --channel' in process.output


@pytest.mark.parametrize("name", PROGRAMS)
def test_wrong_options_and_help_show_the_usage(host: Host, name: str) -> None:
    wrong = host.start(name, "-Z")
    assert wrong.wait() == 1
    assert "Usage: " in wrong.output
    helped = host.start(name, "-h")
    assert helped.wait() == 0
    assert helped.output.splitlines()[0].endswith(name)
    assert "libum" in helped.output.splitlines()[1]
