"""Multicast immediate messages, captured: the stock dissectors of tshark understand every packet (requirement O4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from capture import Capture, numbers
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
    counted = ("lbmc.topicname.topic", "lbmc.ctxinst.ctxinst", "lbmc.tcp_request.qidx", "lbtrm.hdr.session_id")
    fields = ("ip.dst", "udp.dstport", "lbtrm.data.sqn", "lbmc", "lbmc.sqn", "lbmc.frag.offset", *counted)
    mim = wire.read(*fields).where(
        lambda packet: "224.10.10.21" in packet["ip.dst"] and 14401 in numbers(packet, "udp.dstport")
    )
    assert all(packet["lbmc"] for packet in mim.having("lbtrm.data.sqn")), "payload that is no message"
    sent = mim.numbers("lbmc.sqn")
    assert sent == list(range(len(sent)))
    fragments = mim.numbers("lbmc.frag.offset")
    assert len(fragments) > 4 and fragments == sorted(fragments)
    assert len(sent) == 2 * COUNT + len(fragments) + 1
    assert set(mim.values("lbmc.topicname.topic")) == {"orders"}
    assert len(mim.values("lbmc.topicname.topic")) == COUNT + len(fragments) + 1
    assert len(set(mim.values("lbmc.ctxinst.ctxinst"))) == 1
    assert len(mim.values("lbmc.tcp_request.qidx")) == 1
    assert len(set(mim.values("lbtrm.hdr.session_id"))) == 1
