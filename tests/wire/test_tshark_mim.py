"""Multicast immediate messages, captured: the stock dissectors of tshark understand every packet (requirement O4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from capture import Capture
from fixtures import WITHOUT_MULTICAST
from hosts import Host
from relay import support_program

pytestmark = pytest.mark.skipif(WITHOUT_MULTICAST, reason="the messages are multicast")
COUNT = 10
OPTIONS = (
    "context mim_address 224.10.10.21",
    "context transport_lbtrm_source_datagram_max_size 1400",
    "context um_udp_segmentation_offload 0",
)


def test_o4_multicast_immediate_messages(host: Host, loopback_config: Callable[..., str], wire: Capture) -> None:
    result = host.start_command(support_program("mim_exchange"), loopback_config(*OPTIONS), str(COUNT)).finish()
    assert f"{COUNT + 1} messages, {COUNT} topicless, 1 requests, 1 responses" in result
    wire.stop()
    wire.judge()
    mim = "ip.dst == 224.10.10.21 && udp.dstport == 14401"
    assert wire.count(f"{mim} && lbtrm.data.sqn && !lbmc") == 0, "payload that is no message"
    numbers = [int(number, 0) for number in wire.values("lbmc.sqn", mim)]
    assert numbers == list(range(len(numbers)))
    fragments = [int(offset, 0) for offset in wire.values("lbmc.frag.offset", mim)]
    assert len(fragments) > 4 and fragments == sorted(fragments)
    assert len(numbers) == 2 * COUNT + len(fragments) + 1
    assert set(wire.values("lbmc.topicname.topic", mim)) == {"orders"}
    assert len(wire.values("lbmc.topicname.topic", mim)) == COUNT + len(fragments) + 1
    assert len(set(wire.values("lbmc.ctxinst.ctxinst", mim))) == 1
    assert len(wire.values("lbmc.tcp_request.qidx", mim)) == 1
    assert len(set(wire.values("lbtrm.hdr.session_id", mim))) == 1
