"""Late join and off-transport recovery, judged by the stock dissectors of tshark (requirement O4): what goes over the
request ports beside each transport. LBT-IPC itself is memory, of which a capture shows nothing but these requests.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest
from capture import Capture
from hosts import Host

Config = Callable[..., str]
WHOLE = "context um_udp_segmentation_offload 0"


def judge(wire: Capture) -> None:
    wire.stop()
    wire.judge()


def asked(wire: Capture) -> list[int]:
    """Sequence numbers of requests for messages."""
    return [int(number, 0) for number in wire.values("lbmc.ume_rxreq.seqnum", "lbmc.ume_rxreq.flags == 0x0000")]


def retransmitted(wire: Capture) -> list[int]:
    return [int(number, 0) for number in wire.values("lbmc.sqn", "lbmc.type == 10")]


@pytest.mark.parametrize("transport", ["lbtrm", "lbtru", "lbtipc"])
def test_o4_late_join(host: Host, loopback_config: Config, wire: Capture, transport: str) -> None:
    config = loopback_config(
        WHOLE, f"source transport {transport}", "receiver retransmit_request_outstanding_maximum 5"
    )
    source = host.start("lbmsrc", "-c", config, "-d", 0, "-M", 80, "-L", 3600, "-j", 50000000, "orders")
    source.expect("^Lingering")
    host.start("lbmrcv", "-c", config, "-r", 80, "orders").finish()  # by then it waits for nothing
    source.stop_lingering()
    judge(wire)
    assert wire.count("lbmc.lji_req") >= 1
    assert set(wire.values("lbmc.ume_lj_info.low_seqnum")) == {"0"}
    numbers = list(dict.fromkeys(asked(wire)))  # again if the answer is late
    assert numbers == list(range(len(numbers))) and len(numbers) > 5
    assert set(retransmitted(wire)) == set(numbers)
    ports = set(wire.values("tcp.dstport", "lbmc.ume_rxreq"))
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
    judge(wire)
    numbers = asked(wire)
    assert numbers and set(retransmitted(wire)) <= set(numbers)
    assert wire.count(f"{transport}.nak") == 0
    on_transport = {
        int(number, 0) for number in wire.values("lbmc.sqn", f"{transport} && lbmc.type == 0 && !lbmc.tsni")
    }
    assert not on_transport & set(retransmitted(wire)[-3:])  # what was recovered never came there
