"""The example programs of smart sources: what lbmrcv and lbmresp get from them, and what the stock dissector reads.

As in test_examples.py: a program delays and lingers until SIGALRM ends its wait (Process.go_on).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest
from capture import Capture, numbers
from hosts import Host, Process, without_log

Config = Callable[..., str]
BEGIN = "Beginning of Transport Session"
SOON = "source transport_topic_sequence_number_info_interval 200"  # the first packet of a session
WAITS = ("-d", 3600, "-L", 3600)  # until it is told to go on
SESSIONS = {
    "lbtrm": r"LBTRM:127\.0\.0\.1:\d+:[0-9a-f]{8}:224\.10\.10\.1\d:14400\[\d+\]",
    "lbtru": r"LBT-RU:127\.0\.0\.1:\d+:[0-9a-f]{8}\[\d+\]",
}


def ended(receiver: Process) -> str:
    """What an lbmrcv -r printed, which need not wait at its end."""
    receiver.expect("^Avg. throughput")
    receiver.go_on()
    return receiver.finish()


@pytest.mark.parametrize("transport", ["lbtrm", "lbtru"])
@pytest.mark.parametrize("supplied", [False, True])
def test_lbmssrc_sends_what_lbmsrc_would(host: Host, loopback_config: Config, transport: str, supplied: bool) -> None:
    config = loopback_config(f"source transport {transport}", SOON)
    receiver = host.start("lbmrcv", "-c", config, "-r", 300, "-O", "-V", "-v", "news")
    receiver.expect("Immediate messaging target")
    length = 5000 if supplied else 300
    flags = ("-b",) if supplied else ("-a", "-S", "100,1")
    source = host.start("lbmssrc", "-c", config, *WAITS, *flags, "-M", 300, "-V", "-l", length, "-s", 1, "news")
    receiver.expect(BEGIN)
    source.go_on()
    source.expect("^Delaying to catch last stats timer")
    got = ended(receiver)
    source.go_on()
    said = source.stop_lingering()
    assert len(re.findall(r"^Message sqn [0-9a-f]+ verifies$", got, re.M)) == 300
    assert len(re.findall(rf"\[news\]\[{SESSIONS[transport]}\]\[\d+\], {length} bytes$", got, re.M)) == 300
    assert supplied or "misordered" not in got
    assert f"lbmssrc - Sending 300 messages of size {length} bytes to topic [news]\n" in said
    assert re.search(rf"^Sent 300 messages of size {length} bytes in [\d.e+-]+ seconds\.$", said, re.M)
    assert said.rstrip().endswith("Deleting smart source\nDeleting context")
    if not supplied:
        assert "The length of available data space: 368.\n" in said
        assert "measurements every 100 messages with an outlier threshold of 1 usecs\n" in said
        timed = r"^PERFORMANCE: \d+ usec to send 100 msgs; outliers \(1 usec thresh\): cnt: \d+ out time: \d+ max: \d+$"
        assert len(re.findall(timed, said, re.M)) == 3


def test_channel_and_properties_come_and_are_dissected(host: Host, loopback_config: Config, wire: Capture) -> None:
    config = loopback_config("source transport lbtru", SOON, "context um_udp_segmentation_offload 0")
    receiver = host.start("lbmrcv", "-c", config, "-r", 4, "-v", "-v", "-N", 7, "news")
    receiver.expect("^Listening for messages on channel 7$")
    source = host.start(
        "lbmssrc", "-c", config, *WAITS, "-M", 4, "-i", "5,size", "-i", "-7,price", "-N", 7, "-l", 30, "news"
    )
    receiver.expect(BEGIN)
    source.go_on()
    got = ended(receiver)
    said = source.stop_lingering()
    assert "Sending on channel 7\nSending integer message properties:\n" in without_log(said)
    assert "\tproperty #0: size = 5\n\tproperty #1: price = -7\n" in said
    assert len(re.findall(rf"\[news:7\]\[{SESSIONS['lbtru']}\]\[\d\], 30 bytes$", got, re.M)) == 4
    assert got.count("name[size] type[4] size[4] data[5]\nname[price] type[4] size[4] data[-7]\n") == 4
    wire.stop()
    wire.judge()
    behind = "lbmc.apphdr_chain.msgprop.next_hdr"
    packets = wire.read("lbtru.data.sqn", "lbmc", "lbmc.lbm_msg_properties.hdr.key", behind)
    assert all(packet["lbmc"] for packet in packets.having("lbtru.data.sqn"))
    found = Counter(packets.values("lbmc.lbm_msg_properties.hdr.key"))
    assert found["size"] == found["price"] >= 4
    channels = packets.where(lambda packet: 1 in numbers(packet, behind))  # behind the properties
    assert len(channels) == found["size"]


def test_late_joiners_get_what_is_retained(host: Host, loopback_config: Config) -> None:
    config = loopback_config("source transport lbtrm", SOON)
    source = host.start("lbmssrc", "-c", config, "-d", 0, "-L", 3600, "-M", 20, "-j", 64, "-i", "1,a", "news")
    source.expect("^Lingering")
    receiver = host.start("lbmrcv", "-c", config, "-r", 20, "-v", "news")
    got = ended(receiver)
    said = source.stop_lingering()
    assert "Enabled Late Join with message retention buffer count set to 64.\n" in said
    numbers = re.findall(rf"\[news\]\[{SESSIONS['lbtrm']}\]\[(\d+)\](?:-RX-)?, 25 bytes$", got, re.M)
    assert numbers == [str(number) for number in range(20)]


@pytest.mark.parametrize("flags", [("-a",), ("-b",)])
def test_lbmssrcreq_counts_the_responses_of_lbmresp(host: Host, loopback_config: Config, flags: tuple[str]) -> None:
    config = loopback_config("source transport lbtru", SOON)
    responder = host.start("lbmresp", "-c", config, "-E", "-v", "-r", 2, "quotes")
    requester = host.start(
        "lbmssrcreq", "-c", config, "-p", 0, "-L", 0, "-d", 3600, "-P", 3600, "-R", 2, "-v", *flags, "quotes"
    )
    responder.expect(rf"^\[quotes\].*{BEGIN}")
    requester.expect("^Delaying requests for 3600 seconds")
    for number in (1, 2):
        requester.go_on()
        requester.expect_times("^Pausing ", number)
        requester.expect_times(r"^Response \[TCP:127\.0\.0\.1:\d+\]\[[01]\], 25 bytes$", 2 * number)
        responder.expect_times("^Done sending responses", number)
    requester.go_on()
    asked = requester.finish()
    done = "Done waiting for responses. 2 responses (50 total bytes) received. Deleting request.\n"
    assert asked.count(done) == 2
    # A response, or the log's line, may come between two lines of the thread that sends.
    assert re.search(r"^Will send 2 requests\n(?s:.*)^Sending request 0\n(?s:.*)^Sent request 0\.  $", asked, re.M)
    assert asked.rstrip().endswith("Quitting...")
    assert ("The length of available data space: 368.\n" in asked) == ("-a" in flags)
    assert "Unknown" not in asked


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-i", "1"), 'cannot use "1" for option --int-mprop'),
        (("-i", "1,12345678", "-d", 0), "mprop_int_keys[0]: must have 1 to 7 ASCII characters"),
        (("-l", 369, "-d", 0), "a buffer has 368 (smart_src_max_message_length): use -b"),
        (("-S", "0"), "Usage: "),
        (("-N", "x"), 'cannot use "x" for option --channel'),
    ],
)
def test_what_cannot_be_sent_is_named(
    host: Host, loopback_config: Config, arguments: tuple[object, ...], said: str
) -> None:
    process = host.start("lbmssrc", "-c", loopback_config(), *arguments, "news")
    assert process.wait() == 1
    assert said in process.output


@pytest.mark.parametrize("name", ["lbmssrc", "lbmssrcreq"])
def test_wrong_options_and_help_show_the_usage(host: Host, name: str) -> None:
    wrong = host.start(name, "-Z")
    assert wrong.wait() == 1
    assert "Usage: " in wrong.output
    helped = host.start(name, "-h")
    assert helped.wait() == 0
    assert helped.output.splitlines()[0].endswith(name)
    assert "libum" in helped.output.splitlines()[1]
