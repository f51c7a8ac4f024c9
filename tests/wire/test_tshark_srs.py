"""Captures of the daemon srs with its clients, judged by the stock dissectors (requirement O4)."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from capture import Capture, Packet, numbers
from hosts import Host

PORT = 27000
CONVERSATION = """
from srs_client import FLOOD, RDR, RIR, WDR, WIR, SrsClient
with SrsClient(27000, 1).join() as source, SrsClient(27000, 2).join() as told, SrsClient(27000, 3).join(FLOOD) as all_:
    told.batch(told.want(RIR, "orders"), told.want(WIR, "^quo"))
    source.batch(source.sir(1, "orders"), source.sir(2, "quotes"), source.sir(3, "other"))
    told.wait(lambda: len(told.sources) == 2)
    all_.wait(lambda: len(all_.sources) == 3)
    for client in (source, told, all_):
        client.keepalive()
        client.wait(lambda: client.keepalives == 1)
    told.batch(told.slr(source.otid(1), "orders"))
    told.wait(lambda: len(told.log) == 3)
    source.batch(source.sdr(1, "orders"))
    told.wait(lambda: len(told.sources) == 1)
    all_.wait(lambda: len(all_.sources) == 2)
    told.batch(told.want(RDR, "orders"), told.want(WDR, "^quo"))
    told.keepalive()  # answered: what was said before has left; to close with something unread would drop it
    told.wait(lambda: told.keepalives == 2)
with SrsClient(27000, 4) as refused:
    refused.setup()
    refused.register(mode=9)
    refused.wait_closed()
print("done", flush=True)
"""


def test_o4_a_conversation_with_the_resolution_service(host: Host, wire: Capture, tmp_path: Path) -> None:
    path = tmp_path / "srs.xml"
    path.write_text("<um-srs><srs><interface>127.0.0.1</interface></srs></um-srs>")
    daemon = host.start("srs", path)
    daemon.expect("srs started on 127.0.0.1:27000")
    support = Path(__file__).resolve().parents[1] / "support"
    clients = host.start_command(
        sys.executable, "-c", f"import sys; sys.path.insert(0, {str(support)!r})\n{CONVERSATION}"
    )
    clients.expect("^done")
    daemon.signal(signal.SIGINT)
    daemon.finish()
    wire.stop()
    wire.decode_as(f"tcp.port=={PORT},lbmsrs")
    complaints = ("lbmsrs", "_ws.malformed", "lbmsrs.analysis.invalid_msg_id", "_ws.expert.severity")
    told = ("lbmsrs.sir.topic", "lbmsrs.message_id", "lbmsrs.rsocket.frame_type")
    packets = wire.read(*complaints, "_ws.expert.message", *told, "lbmsrs.registration_response.client_id")

    def is_bad(packet: Packet) -> bool:
        grave = any(severity >= 0x600000 for severity in numbers(packet, "_ws.expert.severity"))
        unknown = packet["_ws.malformed"] or packet["lbmsrs.analysis.invalid_msg_id"]
        return bool(unknown or (packet["lbmsrs"] and grave))

    assert not packets.where(is_bad)
    assert {"orders", "quotes", "other"} <= set(packets.values("lbmsrs.sir.topic"))
    identifiers = set(packets.numbers("lbmsrs.message_id"))
    assert identifiers >= {1, 2, 3, 4, 5, 6, 7, 9, 10, 12}, identifiers
    types = set(packets.numbers("lbmsrs.rsocket.frame_type"))
    assert types >= {1, 3, 4, 5, 6, 10}, types
    assert packets.numbers("lbmsrs.registration_response.client_id") == [1, 2, 3]
