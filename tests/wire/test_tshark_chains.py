"""Chains of application headers and message properties, as sources form them, are understood by the stock dissector."""

from __future__ import annotations

from collections import Counter

import pytest
from written import Written, written

NAMES = ("boolean", "byte", "short", "int", "long", "float", "double", "string")


@pytest.fixture(scope="module")
def packets(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return written(
        "chain_messages",
        tmp_path_factory.mktemp("chains"),
        "lbttcp",
        "-o",
        "lbmc.reassemble_fragments:TRUE",
        "-o",
        "tcp.desegment_tcp_streams:TRUE",
    )


def test_every_chain_is_dissected_and_only_fragments_before_the_last_are_complained_about(packets: Written) -> None:
    """Without a transport that numbers its packets they have nothing to be shown as parts of; the last one is whole."""
    frames = packets.rows("frame", "frame.number")
    assert len(packets.rows("lbmc.apphdr_chain", "frame.number")) == len(frames)
    assert packets.rows("_ws.malformed", "frame.number") == []
    complaints = packets.rows("_ws.expert.severity >= 0x600000", "_ws.expert.message", "lbmc.frag.offset")
    assert {text for texts, _ in complaints for text in texts} == {
        "Message not reassembled - reassembly data missing from capture"
    }
    assert sorted(int(offset) for _, offsets in complaints for offset in offsets) == [0] * 3 + [1000] * 3 + [2000] * 2


def test_every_property_is_found_with_its_name(packets: Written) -> None:
    """Five messages with all types, one of them in fragments, and one with a hundred."""
    found = Counter(packets.values("lbmc.lbm_msg_properties.hdr.key"))
    assert found == Counter({name: 5 for name in NAMES}) + Counter(f"p{i}" for i in range(100))


def test_channels_are_elements_of_their_own(packets: Written) -> None:
    """Alone on a whole message and on each of four fragments; behind the length of properties on one more."""
    alone = packets.rows("lbmc.apphdr_chain.first_chain_hdr == 1", "lbmc.apphdr_chain.element.hdr_len")
    assert alone == [[["8"]]] * 5
    behind = packets.rows("lbmc.apphdr_chain.msgprop.next_hdr == 1", "lbmc.apphdr_chain.element.next_hdr")
    assert behind == [[["2", "5", "5", "255"]]]  # the number of hot failover, two headers
