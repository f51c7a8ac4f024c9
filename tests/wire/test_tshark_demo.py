"""The demo, captured: tshark understands every packet, and the demo itself reports no loss."""

from __future__ import annotations

import os
import re
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest
from capture import Capture, is_on
from hosts import BUILD, Host

ROOT = Path(__file__).resolve().parents[2]
AGAIN = "lbtrm.data.flags_fec_type.rx"
SYMBOLS = ("AAPL", "AMZN", "GOOG", "IBM", "MSFT")
pytestmark = pytest.mark.skipif(bool(os.environ.get("UM_SANITIZED")), reason="the sanitizer would have to be preloaded")


def run_demo(host: Host, private: str) -> str:
    pytest.importorskip("vega_datasets")
    env = {"UM_PRIVATE_NET": private, "UM_BUILD_DIR": str(BUILD)}
    demo = ROOT / "examples" / "demo" / "demo.py"
    out = host.start_command(sys.executable, str(demo), "--seconds", "3", "--rate", "300", env=env).finish(120)
    assert re.search(r"^sent +[1-9][\d,]* messages from 2 publishers$", out, re.MULTILINE)
    assert len(re.findall(r"^received .* lost 0; latency p50", out, re.MULTILINE)) == 2
    repaired = re.search(
        r"^repaired +(\d+) lost datagrams with (\d+) NAKs and (\d+) retransmissions, 0 unrec", out, re.M
    )
    assert repaired and all(int(count) > 0 for count in repaired.groups()), out
    return out


def test_demo_loses_nothing_and_every_packet_decodes(host: Host, wire: Capture) -> None:
    run_demo(host, "1")
    wire.stop()
    wire.judge()
    packets = wire.read("lbmr.tir.name", "lbmr.tqr.pattern", AGAIN)
    topics = {f"Market/US/SP500/{symbol}" for symbol in SYMBOLS}
    assert set(packets.values("lbmr.tir.name")) == {*topics, "/29west/statistics"}
    assert packets.having("lbmr.tqr.pattern")
    assert packets.where(lambda packet: is_on(packet, AGAIN))


def test_demo_without_a_private_network_uses_lbmrd(host: Host, wire: Capture) -> None:
    out = run_demo(host, "0")
    assert "lbmrd on 127.0.0.1 instead of multicast" in out
    assert "over LBT-RU: no private network is permitted here" in out
    wire.decode_as("udp.port==25380,lbmr")
    wire.stop()
    wire.judge()
    resolution = wire.read("lbmr", "ip.dst").having("lbmr")
    assert resolution and not any(ip_address(address).is_multicast for address in resolution.values("ip.dst"))
