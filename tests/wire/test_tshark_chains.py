"""Chains of application headers and message properties, as sources form them, are understood by the stock dissector."""

from __future__ import annotations

from collections import Counter

import pytest
from capture import Packets, numbers
from written import written

NAMES = ("boolean", "byte", "short", "int", "long", "float", "double", "string")


@pytest.fixture(scope="module")
def packets(tmp_path_factory: pytest.TempPathFactory) -> Packets:
    return written(
        "chain_messages",
        tmp_path_factory.mktemp("chains"),
        "lbttcp",
        "lbmc.apphdr_chain",
        "_ws.malformed",
        "_ws.expert.severity",
        "_ws.expert.message",
        "lbmc.frag.offset",
        "lbmc.lbm_msg_properties.hdr.key",
        "lbmc.apphdr_chain.first_chain_hdr",
        "lbmc.apphdr_chain.element.hdr_len",
        "lbmc.apphdr_chain.msgprop.next_hdr",
        "lbmc.apphdr_chain.element.next_hdr",
        options=("-o", "lbmc.reassemble_fragments:TRUE", "-o", "tcp.desegment_tcp_streams:TRUE"),
    )


def test_every_chain_is_dissected_and_only_fragments_before_the_last_are_complained_about(packets: Packets) -> None:
    """Without a transport that numbers its packets they have nothing to be shown as parts of; the last one is whole."""
    assert len(packets.having("lbmc.apphdr_chain")) == len(packets) > 0
    assert not packets.having("_ws.malformed")
    complaints = packets.where(
        lambda packet: any(value >= 0x600000 for value in numbers(packet, "_ws.expert.severity"))
    )
    assert set(complaints.values("_ws.expert.message")) == {
        "Message not reassembled - reassembly data missing from capture"
    }
    assert sorted(complaints.numbers("lbmc.frag.offset")) == [0] * 3 + [1000] * 3 + [2000] * 2


def test_every_property_is_found_with_its_name(packets: Packets) -> None:
    """Five messages with all types, one of them in fragments, and one with a hundred."""
    found = Counter(packets.values("lbmc.lbm_msg_properties.hdr.key"))
    assert found == Counter({name: 5 for name in NAMES}) + Counter(f"p{i}" for i in range(100))


def test_channels_are_elements_of_their_own(packets: Packets) -> None:
    """Alone on a whole message and on each of four fragments; behind the length of properties on one more."""
    alone = packets.where(lambda packet: 1 in numbers(packet, "lbmc.apphdr_chain.first_chain_hdr"))
    assert [numbers(packet, "lbmc.apphdr_chain.element.hdr_len") for packet in alone] == [[8]] * 5
    behind = packets.where(lambda packet: 1 in numbers(packet, "lbmc.apphdr_chain.msgprop.next_hdr"))
    # The number of hot failover, two headers.
    assert [numbers(packet, "lbmc.apphdr_chain.element.next_hdr") for packet in behind] == [[2, 5, 5, 255]]
