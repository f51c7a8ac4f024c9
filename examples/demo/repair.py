"""The second act of the demo: the market feed over LBT-RM while one datagram in a hundred is lost, repaired live.

In a private network the kernel drops the datagrams (nftables), so that the library meets real loss. Where that is not
permitted the feed goes over LBT-RU on 127.0.0.1 and the receiving library itself throws the datagrams away.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

PERCENT = 1
PORTS = "14390-14400"  # where LBT-RM data and NAKs go

# Repairs within milliseconds and no low rate limits, in one line; then what makes each datagram one packet.
OPTIONS = {"um_profile": "low_latency", "um_udp_segmentation_offload": 0}
SOURCE_OPTIONS = {"transport_topic_sequence_number_info_interval": 200}


@dataclass(frozen=True)
class Loss:
    """Who loses the datagrams, and how it is said."""

    transport: str
    text: str
    environment: dict[str, str]
    dropped: Callable[[], int | None]  # datagrams dropped so far; None: not known


def _nft(*words: str) -> bool:
    return subprocess.run(["nft", *words], capture_output=True, check=False).returncode == 0


def _dropped_by_the_kernel() -> int | None:
    done = subprocess.run(["nft", "list", "table", "ip", "demo"], capture_output=True, text=True, check=False)
    found = re.search(r"counter packets (\d+)", done.stdout)
    return int(found.group(1)) if found else None


def inject(private: bool) -> Loss:
    """Set the loss up: in the kernel where this network is our own, otherwise in the library."""
    rule = f"add rule ip demo in udp dport {PORTS} numgen random mod 100 < {PERCENT} counter drop"
    if private and shutil.which("nft") is not None:
        table = _nft("add table ip demo")
        if table and _nft("add chain ip demo in { type filter hook input priority 0; }") and _nft(rule):
            return Loss("lbtrm", f"the kernel drops {PERCENT} % of the datagrams", {}, _dropped_by_the_kernel)
    transport = "lbtrm" if private else "lbtru"
    environment = {f"{transport.upper()}_LOSS_RATE": str(PERCENT)}
    why = "nftables is not usable here" if private else "no private network is permitted here"
    return Loss(
        transport, f"{why}: the receiving library drops {PERCENT} % of the datagrams", environment, lambda: None
    )


def rows(publisher: Any, subscriber: Any, loss: Loss) -> list[tuple[str, int | None]]:
    """What happened so far, in the order of a repair."""
    sent, got = publisher.state.get("repairs", {}), subscriber.state.get("repairs", {})
    return [
        ("messages sent", publisher.count),
        ("datagrams dropped on the way, NAKs included", loss.dropped()),
        ("datagrams found missing", got.get("missing", 0)),
        ("NAKs sent", got.get("naks", 0)),
        ("retransmissions", sent.get("retransmissions", 0)),
        ("unrecoverable", got.get("unrecovered", 0)),
        ("messages delivered, in order", subscriber.count),
    ]


def table(title: str, publisher: Any, subscriber: Any, loss: Loss) -> Table:
    result = Table(title=title)
    result.add_column("repair")
    result.add_column("count", justify="right")
    for name, value in rows(publisher, subscriber, loss):
        result.add_row(name, "?" if value is None else f"{value:,}")
    return result


def run(
    console: Console,
    child: Callable[..., Any],
    private: bool,
    symbols: list[str],
    settings: dict[str, Any],
) -> bool:
    """One publisher, one subscriber; True when everything sent was delivered in order. `child` starts a process."""
    loss = inject(private)
    name = {"lbtrm": "LBT-RM", "lbtru": "LBT-RU"}[loss.transport]
    console.print(f"\nthe same feed over {name}: {loss.text}", soft_wrap=True)
    options = {**settings["options"], **OPTIONS}
    # What every system grants, so that no warning about it stands above the table.
    options[f"transport_{loss.transport}_receiver_socket_buffer"] = 131072
    common = {
        **settings,
        "options": options,
        "source_options": {**SOURCE_OPTIONS, "transport": loss.transport},
        "symbols": symbols,
    }
    title = f"libum: market data over {name} with {PERCENT} % loss"
    children = []
    try:
        subscriber = child("subscriber.py", "subscriber", {**common, "batches": False}, loss.environment)
        children.append(subscriber)
        publisher = child("publisher.py", "publisher", common)
        children.append(publisher)
        subscriber.wait_for("ready", 60)
        publisher.tell("go")
        with Live(table(title, publisher, subscriber, loss), console=console, transient=True) as live:
            while not publisher.state.get("done") and publisher.process.poll() is None:
                live.update(table(title, publisher, subscriber, loss))
                time.sleep(0.25)
            end = time.monotonic() + 10
            while subscriber.count < publisher.count and time.monotonic() < end:
                time.sleep(0.1)
        for one in (subscriber, publisher):
            one.tell("end")
            one.finish()
        console.print(table(title, publisher, subscriber, loss))
        found = dict(rows(publisher, subscriber, loss))
        console.print(
            f"repaired  {found['datagrams found missing']} lost datagrams with {found['NAKs sent']} NAKs and "
            f"{found['retransmissions']} retransmissions, {found['unrecoverable']} unrecoverable; "
            f"{subscriber.count:,} of {publisher.count:,} messages delivered in order",
            soft_wrap=True,
        )
        return subscriber.count == publisher.count > 0 and not subscriber.state["lost"]
    finally:
        for one in children:
            one.kill()
