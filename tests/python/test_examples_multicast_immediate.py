"""Multicast immediate messages between example programs."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from fixtures import WITHOUT_MULTICAST
from hosts import Host

pytestmark = pytest.mark.skipif(WITHOUT_MULTICAST, reason="the messages are multicast")
MIM = "context mim_address 224.10.10.21"


def test_lbmimsg_without_a_target_reaches_everybody(host: Host, loopback_config: Callable[..., str]) -> None:
    config = loopback_config(MIM)
    first = host.start("lbmrcv", "-c", config, "-v", "-r", 5, "orders")
    second = host.start("lbmrcv", "-c", config, "-v", "-r", 5, "orders")
    for receiver in (first, second):
        receiver.expect("Immediate messaging target")
    sender = host.start("lbmimsg", "-c", config, "-M", 5, "-L", 3600, "orders")
    for receiver in (first, second):
        for number in range(5):
            receiver.expect(rf"\[orders\]\[LBTRM:127\.0\.0\.1:\d+:[0-9a-f]{{8}}:224\.10\.10\.21:14401\]\[{number}\]")
        receiver.finish()
    assert "Sent 5 immediate messages of size 25 bytes" in sender.stop_lingering()


def test_lbmireq_without_a_target_is_answered_by_everybody(host: Host, loopback_config: Callable[..., str]) -> None:
    config = loopback_config(MIM)
    responders = [host.start("lbmresp", "-c", config, "-v", "orders") for _ in range(2)]
    process = host.start("lbmireq", "-c", config, "-p", 0, "-R", 300, "-P", 1, "-v", "orders")
    process.expect(r"^Sending 300 requests of size 25 bytes to target <> topic <orders>$")
    process.expect(r"^Sent request 0\. Pausing 1 seconds\.$")
    answer = r"^Response \[TCP:127\.0\.0\.1:"
    process.expect(rf"{answer}(\d+)\]\[\d+\], 25 bytes$(?s:.*){answer}(?!\1\])\d+\]\[\d+\], 25 bytes$")
    process.expect(r"^Done waiting for responses\. 2 responses \(50 bytes\) received\. Deleting request\.$")
    for responder in responders:
        responder.expect(
            r"^Request \[orders\]\[LBTRM:127\.0\.0\.1:\d+:[0-9a-f]{8}:224\.10\.10\.21:14401\]\[\d+\], 25 bytes$"
        )


def test_lbmpong_measures_with_multicast_immediate_messages(host: Host, loopback_config: Callable[..., str]) -> None:
    config = loopback_config()
    host.start("lbmpong", "-c", config, "-I", "-v", "-t", 300, "pong")
    got = host.start("lbmpong", "-c", config, "-I", "-M", 50, "-i", 5, "ping").finish()
    assert re.search(r"^Elapsed time [\d.e-]+ secs\. 50 messages \(RTTs\)\. [\d.e-]+ msec RTT", got, re.MULTILINE)
    assert "50 RTT measurements. " in got
    assert "Receiver connect" not in got


def test_lbmsrc_prints_the_immediate_messages_it_gets(host: Host, loopback_config: Callable[..., str]) -> None:
    config = loopback_config()
    source = host.start("lbmsrc", "-c", loopback_config("context request_tcp_port 15000"), "-v", "-d", 300, "news")
    source.expect("Will start sending")
    host.start("lbmimsg", "-c", config, "-o", "-M", 3000, "-P", 100, "-T", "TCP:127.0.0.1:15000")
    source.expect(r"^IM Data \[TCP:127\.0\.0\.1:\d+\]\[1\], 25 bytes$")
