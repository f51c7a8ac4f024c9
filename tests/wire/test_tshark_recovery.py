"""Late join and off-transport recovery, judged by the stock dissectors of tshark (requirement O4): what goes over the
request ports beside each transport. LBT-IPC itself is memory, of which a capture shows nothing but these requests.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest
from capture import Capture, Packets, numbers
from hosts import Host

Config = Callable[..., str]
WHOLE = "context um_udp_segmentation_offload 0"


def judged(wire: Capture, *fields: str) -> Packets:
    wire.stop()
    wire.judge()
    return wire.read("lbmc.ume_rxreq.seqnum", "lbmc.ume_rxreq.flags", "lbmc.sqn", "lbmc.type", *fields)


def asked(packets: Packets) -> list[int]:
    """Sequence numbers of requests for messages."""
    requests = packets.where(lambda packet: 0 in numbers(packet, "lbmc.ume_rxreq.flags"))
    return requests.numbers("lbmc.ume_rxreq.seqnum")


def retransmitted(packets: Packets) -> list[int]:
    return packets.where(lambda packet: 10 in numbers(packet, "lbmc.type")).numbers("lbmc.sqn")


@pytest.mark.parametrize("transport", ["lbtrm", "lbtru", "lbtipc"])
def test_o4_late_join(host: Host, loopback_config: Config, wire: Capture, transport: str) -> None:
    config = loopback_config(
        WHOLE, f"source transport {transport}", "receiver retransmit_request_outstanding_maximum 5"
    )
    source = host.start("lbmsrc", "-c", config, "-d", 0, "-M", 80, "-L", 3600, "-j", 50000000, "orders")
    source.expect("^Lingering")
    host.start("lbmrcv", "-c", config, "-r", 80, "orders").finish()  # by then it waits for nothing
    source.stop_lingering()
    packets = judged(wire, "lbmc.lji_req", "lbmc.ume_lj_info.low_seqnum", "lbmc.ume_rxreq", "tcp.dstport")
    assert packets.having("lbmc.lji_req")
    assert set(packets.numbers("lbmc.ume_lj_info.low_seqnum")) == {0}
    wanted = list(dict.fromkeys(asked(packets)))  # again if the answer is late
    assert wanted == list(range(len(wanted))) and len(wanted) > 5
    assert set(retransmitted(packets)) == set(wanted)
    ports = set(packets.having("lbmc.ume_rxreq").values("tcp.dstport"))
    assert len(ports) == 1  # the source's request port, and nothing of it beside


@pytest.mark.parametrize("transport", ["lbtrm", "lbtru"])
def test_o4_off_transport_recovery(host: Host, loopback_config: Config, wire: Capture, transport: str) -> None:
    """A tenth of the datagrams is lost at the source; the first NAK would come after five minutes."""
    config = loopback_config(
        WHOLE,
        f"source transport {transport}",
        f"receiver transport_{transport}_nak_initial_backoff_interval 300000",
        f"receiver transport_{transport}_nak_generation_interval 600000",
        "source implicit_batching_minimum_length 1",
        "receiver use_otr 1",
        "receiver otr_request_initial_delay 100",
    )
    receiver = host.start("lbmrcv", "-c", config, "-v", "-r", 1500, "orders")
    source = host.start("lbmsrc", "-c", config, "-d", 0, "-P", 5, "-M", 1000000, "-j", 50000000, "orders")
    receiver.expect(r"\[\d+\](-RX-)?, 25 bytes$")
    source.signal(signal.SIGUSR1)
    assert "OTR Initiated for [orders]" in receiver.finish()
    source.signal(signal.SIGTERM)
    packets = judged(wire, transport, f"{transport}.nak", "lbmc.tsni")
    wanted = asked(packets)
    assert wanted and set(retransmitted(packets)) <= set(wanted)
    assert not packets.having(f"{transport}.nak")
    messages = packets.having(transport).where(lambda packet: 0 in numbers(packet, "lbmc.type"))
    on_transport = messages.where(lambda packet: not packet["lbmc.tsni"]).numbers("lbmc.sqn")
    assert not set(on_transport) & set(retransmitted(packets)[-3:])  # what was recovered never came there
