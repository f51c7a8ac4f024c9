"""The example programs run against each other; command lines and output are a contract with scripts.

Nobody guesses how long others take: a program delays and lingers until SIGALRM ends its wait (Process.go_on).
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Sequence

import pytest
from hosts import Host, Process, without_log

Config = Callable[..., str]
BEGIN = "Beginning of Transport Session"
WAITS = ("-d", 3600, "-L", 3600)  # until it is told to go on
INTERVAL = r"^[0-9.e+]+ *secs\.  [0-9.e+]+ *[ KMG]msgs/sec\.  [0-9.e+]+ *[ KMG]bps"
PROGRAMS = (
    "lbmsrc",
    "lbmrcv",
    "lbmmsrc",
    "lbmmrcv",
    "lbmwrcv",
    "lbmrcvq",
    "lbmrcvxsp",
    "lbmwrcvq",
    "lbmpong",
    "lbmlatping",
    "lbmlatpong",
    "lbmstrm",
    "lbmtrreq",
    "lbmreq",
    "lbmmreq",
    "lbmmrcvq",
    "lbmspike",
    "lbmprice",
    "lbmresp",
    "lbmrespq",
    "lbmimsg",
    "lbmireq",
)


def sending(host: Host, config: str, receivers: Sequence[Process], *arguments: object, topic: str = "news") -> Process:
    """An lbmsrc that sends once the receivers have its session, and lingers."""
    source = host.start("lbmsrc", "-c", config, *WAITS, *arguments, topic)
    for receiver in receivers:
        receiver.expect(BEGIN)
    source.go_on()
    return source


def test_sdmtopdm_carries_values_over(host: Host) -> None:
    expected = ["SDM: 66 7853 12345, 67 bytes", "PDM: 66 7853 12345, 39 bytes", "with the definition: 190 bytes"]
    assert host.start("sdmtopdm").finish().splitlines() == expected


def test_minsrc_and_minrcv_exchange_one_greeting(host: Host, loopback_config: Config) -> None:
    """minsrc waits for nobody: a receiver that comes too late for one hears another."""
    env = {"LBM_DEFAULT_CONFIG_FILE": loopback_config()}
    receiver = host.start("minrcv", env=env)
    for _ in range(30):
        host.start("minsrc", env=env).finish()
        if receiver.popen.poll() is not None:
            break
    lines = receiver.finish().splitlines()
    assert "Received 6 bytes on topic Greeting: 'Hello!'" in lines
    assert any(
        re.fullmatch(r"\[Greeting\]\[TCP:[\d.]+:\d+:[0-9a-f]{8}\[\d+\]\], Beginning of .*", line) for line in lines
    )


def test_lbmsrc_sends_and_lbmrcv_sums_up(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    receiver = host.start("lbmrcv", "-c", config, "-S", "-v", "news")
    receiver.expect("Immediate messaging target: TCP:")
    source = sending(host, config, [receiver], "-M", 1000)
    receiver.expect(r"\[999\], 25 bytes$")
    sent = source.stop_lingering()
    got = receiver.finish()
    assert "Sending 1000 messages of size 25 bytes to topic [news]\n" in sent
    assert re.search(r"^Sent 1000 messages of size 25 bytes in [\d.e+-]+ seconds\.$", sent, re.MULTILINE)
    assert re.search(r"^Receiver connect \[TCP:127\.0\.0\.1:\d+\]$", sent, re.MULTILINE)
    assert sent.rstrip().endswith("Deleting source\nDeleting context")
    assert re.search("^Messages received : 1000$", got, re.MULTILINE)
    assert re.search("^Bytes received    : 25000$", got, re.MULTILINE)
    assert re.search(INTERVAL, got, re.MULTILINE)
    assert re.search(r"^\[news\]\[TCP:[^]]+\]\], End of Transport Session$", got, re.MULTILINE)


def test_order_holds_and_every_message_verifies(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    receiver = host.start("lbmrcv", "-c", config, "-r", 500, "-O", "-V", "-v", "news")
    receiver.expect("Immediate messaging target")
    source = sending(host, config, [receiver], "-M", 500, "-V", "-l", 200)
    got = receiver.finish()
    source.stop_lingering()
    assert len(re.findall(r"^Message sqn [0-9a-f]+ verifies$", got, re.MULTILINE)) == 500
    assert "does not verify" not in got
    assert "misordered" not in got
    assert "Quitting.... received 500 messages\n" in got
    assert len(re.findall(r"\[news\]\[TCP:[^]]+\]\]\[\d+\], 200 bytes$", got, re.MULTILINE)) == 500


def test_payload_is_dumped_with_a_second_v(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    receiver = host.start("lbmrcv", "-c", config, "-r", 1, "-v", "-v", "news")
    receiver.expect("Immediate messaging target")
    source = sending(host, config, [receiver], "-M", 1)
    got = receiver.finish()
    source.stop_lingering()
    assert "6d 65 73 73 61 67 65 20 30 00 00 00 00 00 00 00 \tmessage 0.......\n" in got
    assert "00 00 00 00 00 00 00 00 00                      \t.........       \n" in got


def test_nonblocking_source_loses_nothing_against_a_slow_receiver(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    receiver = host.start("lbmrcv", "-c", config, "-r", 200000, "-O", "news")
    receiver.expect("Immediate messaging target")
    source = sending(host, config, [receiver], "-n", "-M", 200000, "-l", 500)
    source.expect("Sending 200000")
    for _ in range(3):
        receiver.signal(signal.SIGSTOP)
        receiver.signal(signal.SIGCONT)
    got = receiver.finish(120)
    source.stop_lingering()
    assert "Quitting.... received 200000 messages\n" in got
    assert "misordered" not in got


@pytest.mark.parametrize("queue", [False, True])
def test_wildcard_receiver_names_each_new_topic(host: Host, loopback_config: Config, queue: bool) -> None:
    config = loopback_config()
    name = "lbmwrcvq" if queue else "lbmwrcv"
    receiver = host.start(name, "-c", config, "-v", "-r", 50, r"^Market\.\d$")
    receiver.expect(r"^Creating wildcard receiver for pattern \[\^Market\\.\\d\$\] - using PCRE$")
    source = host.start("lbmmsrc", "-c", config, *WAITS, "-S", 5, "-r", "Market", "-M", 50)
    for number in range(5):
        receiver.expect(rf"^new topic \[Market\.{number}\]")
    source.go_on()
    got = receiver.finish()
    source.stop_lingering()
    assert sorted(re.findall(r"^new topic \[(.*?)\]", got, re.MULTILINE)) == [f"Market.{n}" for n in range(5)]
    assert "Quitting.... received 50 messages\n" in got


def test_queue_receiver_prints_the_lines_of_its_plain_twin(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    plain = host.start("lbmrcv", "-c", config, "-v", "-r", 20, "news")
    queued = host.start("lbmrcvq", "-c", config, "-v", "-r", 20, "news")
    plain.expect("Immediate messaging target")
    queued.expect("Immediate messaging target")
    source = sending(host, config, [plain, queued], "-M", 20)
    pattern = re.compile(r"(\[news\]\[.*\]\[\d+\], 25 bytes)$", re.MULTILINE)
    assert pattern.findall(plain.finish()) == pattern.findall(queued.finish())
    assert len(pattern.findall(queued.output)) == 20
    source.stop_lingering()


def test_many_topics_from_four_threads_arrive_in_full(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    receiver = host.start("lbmmrcv", "-c", config, "-R", 100, "-C", 2, "-s", "-v")
    receiver.expect("Created 100 receivers. Will start")
    source = host.start("lbmmsrc", "-c", config, *WAITS, "-S", 100, "-T", 4, "-M", 20000)
    receiver.expect_times(BEGIN, 100)
    source.go_on()
    receiver.expect_times(", 25 bytes$", 20000)
    receiver.expect(r"(?s:.*), 25 bytes\n(?s:.*)^stats ")
    sent = source.stop_lingering()
    assert "Using 4 threads to send 20000 messages of size 25 bytes (5000 messages per thread).\n" in sent
    receiver.signal(signal.SIGTERM)
    got = receiver.finish()
    assert "Quitting.... received 20000 messages\n" in got
    assert re.search(r"^stats \d+/\d+ \(ctx [01]\): \[TCP:.*\], received \d+, LBM \d+/\d+/\d+$", got, re.MULTILINE)


def test_f28_lbmstrm_is_never_ahead_of_its_rate(host: Host, loopback_config: Config) -> None:
    """A busy machine may delay messages, and they are caught up with; nothing can make 2,001 of them take less than two
    seconds at 1,000 a second."""
    config = loopback_config()
    receiver = host.start("lbmmrcv", "-c", config, "-R", 10, "-v")
    receiver.expect("Created 10 receivers. Will start")
    begin = time.monotonic()
    source = host.start("lbmstrm", "-c", config, "-S", 10, "-m", 1000, "-M", 2001, "-L", 3600, "-j", 10000000)
    source.expect("^Lingering")
    assert time.monotonic() - begin >= 2
    assert re.search(r"^[1-9]\d* msgs/sec$", source.output, re.MULTILINE)
    receiver.expect_times(r"\[\d+\](-RX-)?, 25 bytes$", 2001)
    source.stop_lingering()
    receiver.signal(signal.SIGTERM)
    assert "Quitting.... received 2001 messages\n" in receiver.finish()


def test_lbmpong_counts_every_round_trip(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    pong = host.start("lbmpong", "-c", config, "pong")
    ping = host.start("lbmpong", "-c", config, "-M", 100, "-i", 5, "-C", "-R", "ping")
    got = ping.finish()
    assert re.search(r"^Elapsed time [\d.e-]+ secs\. 100 messages \(RTTs\)\. [\d.e-]+ msec RTT", got, re.MULTILINE)
    assert re.search(r"^100 RTT measurements\. RTT min/avg/max = ", got, re.MULTILINE)
    assert len(re.findall(r"^RTT [\d.e-]+ msec$", got, re.MULTILINE)) == 100
    assert len(re.findall(r"^RTT ignore", got, re.MULTILINE)) == 5
    pong.signal(signal.SIGTERM)


def test_lbmlatping_prints_the_statistics_of_its_round_trips(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    pong = host.start("lbmlatpong", "-c", config)
    got = host.start("lbmlatping", "-c", config, "-l", 100, "-i", 100, "-M", 1000).finish()
    assert (
        re.sub(r"\d+\.?\d*", "N", got[got.index("Successfully") :])
        == """Successfully sent & received N total N-byte messages, ignoring the first N messages.
Average per-message round-trip latency:  N nanoseconds.
Round-trip times in nanoseconds, assuming a N GHz clock:
Min: N, Max N
Mean: N, Median: N, Standard Dev: N
N%: N, N%: N, N%: N, N%: N, N%: N
"""
    )
    assert "sent & received 1100 total 100-byte messages, ignoring the first 100" in got
    pong.signal(signal.SIGTERM)


def target_of(receiver: Process) -> str:
    return receiver.expect(r"^Immediate messaging target: (TCP:[\d.]+:\d+)$").group(1)


@pytest.mark.parametrize("name", ["lbmrcv", "lbmrcvq", "lbmrcvxsp"])
def test_lbmimsg_reaches_one_program_without_and_with_a_topic(host: Host, loopback_config: Config, name: str) -> None:
    config = loopback_config()
    receiver = host.start(name, "-c", config, "-v", "-r", 30, "news")
    target = target_of(receiver)
    first = host.start("lbmimsg", "-c", config, "-M", 10, "-L", 3600, "-o", "-T", target)
    receiver.expect(r"^IM \[TCP:[\d.:]+\]\[9\], 25 bytes$")
    bare = first.stop_lingering()
    second = host.start("lbmimsg", "-c", config, "-M", 20, "-L", 3600, "-l", 100, "-T", target, "news")
    got = receiver.finish()
    second.stop_lingering()
    assert f"Sending 10 topic-less immediate messages of size 25 bytes to target <{target}> topic <>\n" in bare
    assert re.search(r"^Sent 10 topic-less immediate messages of size 25 bytes in [\d.e+-]+ seconds\.$", bare, re.M)
    numbers = re.findall(r"^IM \[TCP:127\.0\.0\.1:\d+\]\[(\d+)\], 25 bytes$", got, re.M)
    assert numbers == [str(number) for number in range(10)]
    numbers = re.findall(r"\[news\]\[TCP:127\.0\.0\.1:\d+\]\[(\d+)\], 100 bytes$", got, re.M)
    assert numbers == [str(number) for number in range(20)]


def test_lbmimsg_numbers_topics_and_refuses_a_topic_beside_o(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    receiver = host.start("lbmrcv", "-c", config, "-v", "-r", 2, "news2")
    sender = host.start("lbmimsg", "-c", config, "-M", 6, "-n", 3, "-L", 3600, "-T", target_of(receiver), "news")
    assert len(re.findall(r"\[news2\]\[TCP:[\d.:]+\]\[\d+\], 25 bytes$", receiver.finish(), re.M)) == 2
    sender.stop_lingering()
    process = host.start("lbmimsg", "-c", config, "-o", "news")
    assert process.wait() == 1
    assert "lbmimsg: error--selected topic-less option and still specified topic\n" in process.output


def test_lbmireq_asks_one_program(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    receiver = host.start("lbmrcv", "-c", config, "-v", "-r", 2, "news")
    target = target_of(receiver)
    requester = host.start("lbmireq", "-c", config, "-p", 0, "-R", 2, "-P", 1, "-L", 3600, "-T", target)
    got = receiver.finish()
    asked = requester.stop_lingering()
    assert f"Sending 2 requests of size 25 bytes to target <{target}> topic <>\n" in asked
    assert "Sending request 0\n" in asked
    assert "Sent request 1. Pausing 1 seconds.\n" in asked
    assert "Done waiting for responses. 0 responses (0 bytes) received. Deleting request.\n" in asked
    assert "Quitting...\nLingering for 3600 seconds...\n" in without_log(asked)
    assert len(re.findall(r"^IM Request \[TCP:127\.0\.0\.1:\d+\]\[[01]\], 25 bytes$", got, re.M)) == 2


def test_f28_lbmtrreq_asks_and_ends(host: Host, loopback_config: Config) -> None:
    out = host.start("lbmtrreq", "-c", loopback_config(), "-a", "-q", "-w", "-d", 1, "-L", 1).finish()
    assert [line for line in out.splitlines() if not line.startswith("LOG ")] == [
        "No interval given. Using 1000 milliseconds.",
        "Lingering for 1 seconds...",
        "Deleting context",
    ]


# ---- requests ----


RESPONSE = r"^Response \[TCP:127\.0\.0\.1:\d+\]\[[01]\], 25 bytes$"


def lines_of(process: Process) -> list[str]:
    """What the program printed, without the lines of the library."""
    return [line for line in process.output.splitlines() if not line.startswith("LOG ")]


def requester(
    host: Host, config: str, responder: Process, done: str, requests: int, responses: int
) -> tuple[Process, list[str]]:
    """An lbmreq on the topic `quotes` that has each request answered, and what it printed; `done` is what the responder
    prints behind each."""
    process = host.start(
        "lbmreq", "-c", config, "-p", 0, "-L", 0, "-d", 3600, "-P", 3600, "-R", requests, "-v", "quotes"
    )
    responder.expect(rf"^\[quotes\].*{BEGIN}")
    process.expect("^Delaying requests for")
    for number in range(1, requests + 1):
        process.go_on()
        process.expect_times(r"^Pausing ", number)
        process.expect_times("^Response ", number * responses)
        responder.expect_times(done, number)
    process.go_on()
    process.finish()
    return process, lines_of(process)


def test_lbmreq_counts_the_responses_of_lbmresp(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    responder = host.start("lbmresp", "-c", config, "-E", "-v", "-r", 2, "quotes")
    process, lines = requester(host, config, responder, "^Done sending responses", 3, 2)
    got = responder.finish()
    assert "Using TCP port 0 for responses" in lines
    assert "Will send 3 requests" in lines
    assert any(re.fullmatch(r"Receiver connect \[TCP:127\.0\.0\.1:\d+\]", line) for line in lines)
    done = [line for line in lines if line.startswith("Done waiting")]
    assert done == ["Done waiting for responses. 2 responses (50 total bytes) received. Deleting request."] * 3
    assert len(re.findall(RESPONSE, process.output, re.MULTILINE)) == 6
    assert lines[-1] == "Quitting..."
    assert len(re.findall(r"^Request \[quotes\]\[TCP:[^]]+\]\]\[[012]\], 25 bytes$", got, re.MULTILINE)) == 3
    assert got.count("Sending response. 2 responses of 25 bytes each (50 total bytes).") == 3
    assert got.count("Done sending responses. Deleting response.") == 3


def test_lbmreq_counts_the_responses_that_come_through_its_queue(host: Host, loopback_config: Config) -> None:
    """A timer of the library ends its pauses: responses that come later are those of no request."""
    config = loopback_config()
    responder = host.start("lbmresp", "-c", config, "-E", "-v", "-r", 2, "quotes")
    process = host.start("lbmreq", "-c", config, "-p", 0, "-d", 0, "-P", 2, "-v", "-q", "quotes")
    process.expect("^Event queue in use$")
    process.expect(r"^Done waiting for responses\. 2 responses \(50 total bytes\) received\. Deleting request\.$", 60)
    process.expect("^Timer fired, unblocking queue$")
    process.expect(RESPONSE)
    process.signal(signal.SIGKILL)
    assert "Done sending responses. Deleting response." in responder.finish()


def test_lbmresp_lets_another_one_answer(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    second = host.start("lbmresp", "-c", config, "-E", "elsewhere")
    first = host.start("lbmresp", "-c", config, "-E", "-f", "elsewhere", "quotes")
    second.expect(BEGIN)
    _, lines = requester(host, config, first, "^Done forwarding requests", 1, 1)
    assert "Done waiting for responses. 1 response (25 total bytes) received. Deleting request." in lines
    assert 'Forwarding request to topic "elsewhere".\nDone forwarding requests.  Deleting response.' in first.finish()
    got = second.finish()
    assert "Received forwarded request: request data 0" in got
    assert "Sending response. 1 response of 25 bytes (25 total bytes)." in got


def test_lbmrespq_answers_through_its_queue(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    responder = host.start("lbmrespq", "-c", config, "-v", "-r", 2, "quotes")
    _, lines = requester(host, config, responder, r"^Request \[quotes\]", 2, 1)
    got = responder.finish()
    assert sum(line.startswith("Done waiting for responses. 1 response ") for line in lines) == 2
    assert re.search(r"^[\d.e+-]+ secs\. [\d.e+-]+[ KMG] requests/sec\.$", got, re.MULTILINE)
    assert len(re.findall(r"^Request \[quotes\]", got, re.MULTILINE)) == 2


def test_lbmresping_measures_one_join_after_the_other(host: Host, loopback_config: Config) -> None:
    process = host.start("lbmresping", "-c", loopback_config())
    for number in range(2):
        process.expect(f"Topic resolution and connection seq={number}, time=")
    process.signal(signal.SIGKILL)


@pytest.mark.parametrize("name", PROGRAMS)
def test_unknown_option_shows_the_usage_and_fails(host: Host, name: str) -> None:
    process = host.start(name, "--no-such-option")
    assert process.wait() == 1
    assert "Usage: " in process.output


@pytest.mark.parametrize("name", PROGRAMS)
def test_help_shows_version_and_purpose(host: Host, name: str) -> None:
    process = host.start(name, "-h")
    assert process.wait() == 0
    lines = process.output.splitlines()
    assert lines[0].endswith(name)
    assert "libum" in lines[1]


def test_flags_of_later_features_say_so(host: Host, loopback_config: Config) -> None:
    sender = host.start("lbmpong", "-c", loopback_config(), "-o", 1, "-h")
    assert "persistence is not supported by this version" in sender.finish()


LATE = r"\[late\]\[TCP:.*\]\[(\d+)\](-RX-)?, 25 bytes$"


def late_joiner(host: Host, source_config: str, receiver_config: str, *arguments: object) -> tuple[str, list[int]]:
    """What lbmsrc prints, and the numbers that an lbmrcv prints, all retransmitted: it comes when all are sent."""
    source = host.start("lbmsrc", "-c", source_config, "-d", 0, "-M", 100, "-L", 3600, *arguments, "late")
    source.expect("^Lingering")
    receiver = host.start("lbmrcv", "-c", receiver_config, "-v", "-S", "late")
    receiver.expect(r"\[99\](-RX-)?, 25 bytes$")
    said = source.stop_lingering()
    lines = re.findall(LATE, receiver.finish(), re.MULTILINE)
    assert all(replayed for _, replayed in lines)
    return said, [int(number) for number, _ in lines]


def test_a_late_joiner_gets_one_retained_message_without_retention_settings(
    host: Host, loopback_config: Config
) -> None:
    said, replayed = late_joiner(
        host, loopback_config("source late_join 1"), loopback_config("receiver use_late_join 1")
    )
    assert (
        'LOG Level 5: Core-5688-539: NOTICE: Source "late" has no retention settings (1 message retained max)' in said
    )
    assert replayed == [99]


def test_a_late_joiner_gets_all_retained_messages(host: Host, loopback_config: Config) -> None:
    said, replayed = late_joiner(host, loopback_config(), loopback_config(), "-j", 50000000)
    assert "Enabled Late Join with message retention threshold set to 50000000 bytes." in said
    assert replayed == list(range(100))


def test_a_late_joiner_gets_as_many_messages_back_as_it_asks_for(host: Host, loopback_config: Config) -> None:
    _, replayed = late_joiner(
        host, loopback_config(), loopback_config("receiver retransmit_request_maximum 10"), "-j", 50000000
    )
    assert replayed == list(range(90, 100))


def test_a_late_joiner_gets_what_is_sent_meanwhile_behind_what_is_replayed(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    source = host.start("lbmsrc", "-c", config, "-d", 0, "-P", 20, "-M", 200, "-L", 3600, "-j", 50000000, "late")
    early = host.start("lbmrcv", "-c", config, "-v", "late")
    early.expect(r"\[20\](-RX-)?, 25 bytes$")
    late = host.start("lbmrcv", "-c", config, "-v", "-S", "late")
    late.expect(r"\[199\](-RX-)?, 25 bytes$")
    source.stop_lingering()
    lines = re.findall(LATE, late.finish(), re.MULTILINE)
    assert [int(number) for number, _ in lines] == list(range(200))
    replayed = [int(number) for number, mark in lines if mark]
    assert len(replayed) > 20 and replayed == list(range(len(replayed)))


@pytest.mark.parametrize("options", [(), ("-Q",), ("-P",), ("-d",)])
def test_lbmrcvxsp_spreads_sessions_over_xsps_in_turn(
    host: Host, loopback_config: Config, options: tuple[str, ...]
) -> None:
    config = loopback_config()
    receiver = host.start("lbmrcvxsp", "-c", config, "-R", 2, *options, "-r", 30, "news")
    receiver.expect("Using a round-robin strategy with 2 XSPs")
    sources = [host.start("lbmsrc", "-c", config, *WAITS, "-M", 10, "news") for _ in range(3)]
    receiver.expect_times(BEGIN, 3)
    for source in sources:
        source.go_on()
    got = receiver.finish()
    for source in sources:
        source.stop_lingering()
    assert len(re.findall(r"^NEW TRANSPORT: TCP:", got, re.MULTILINE)) == 3
    used = re.findall(r"^(?:Creating and using a new|Using) XSP at index: (\d)$", got, re.MULTILINE)
    assert used == ["0", "1", "0"]
    assert "Quitting.... received 30 messages\n" in got
    assert len(re.findall(r"^Deleting XSP at index: \d$", got, re.MULTILINE)) >= 2


def test_lbmrcvxsp_leaves_sessions_to_the_context(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    receiver = host.start("lbmrcvxsp", "-c", config, "-D", "-S", "-v", "news")
    receiver.expect("Immediate messaging target")
    source = sending(host, config, [receiver], "-M", 100)
    receiver.expect(r"\[99\], 25 bytes$")
    source.stop_lingering()
    got = receiver.finish()
    assert "Applying 'default_xsp' mapping.\n" in got
    assert "XSP at index" not in got
    assert re.search("^Messages received : 100$", got, re.MULTILINE)
