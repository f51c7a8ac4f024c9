"""What `um top` shows: a table of topics and sources, their rates and losses, and of receivers that do not keep up.

It subscribes to everything that matches a pattern, so it costs the network what any other receiver does. Receivers of a
TCP session are seen from the host of its source: their connections, and how many bytes wait for each. Those of LBT-RM
and LBT-RU that ask for repairs are ranked below, seen from the host of the source by users who may look at packets.
Where processes publish monitoring records, those that do not keep up have a line with host, process and topic; how many
do is told as well, because of others nothing is known.
"""

from __future__ import annotations

import argparse
import collections
import json
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from um_cffi import Batch, MessageType, WildcardReceiver
from um_cffi.commands import _common
from um_cffi.commands._naks import NakWatch, is_repaired
from um_cffi.commands._slow import SlowWatch

SLOW_BYTES = 65536  # waiting for a receiver in the kernel of the source's host
COLUMNS = ("topic", "source", "messages", "msg/s", "kB/s", "lost", "rcvs", "slow", "state")
RIGHT = (2, 3, 4, 5, 6, 7)
NAK_COLUMNS = ("receiver that asks for repairs", "source", "NAKs", "NAK/s")
NAK_RIGHT = (2, 3)
NAK_LINES = 10
SLOW_COLUMNS = ("does not keep up", "host", "process", "topics", "because")
SLOW_RIGHT = (2,)
PLACES = {"rate": 3, "bytes": 4, "messages": 2, "lost": 5}  # in a row, for the ORDERS of top.py


@dataclass
class Flow:
    """One topic of one source."""

    messages: int = 0
    bytes: int = 0
    lost: int = 0
    state: str = "new"
    shown_messages: int = 0
    shown_bytes: int = 0
    rate: float = 0.0
    byte_rate: float = 0.0

    def tick(self, seconds: float) -> None:
        """Begin a new interval."""
        self.rate = (self.messages - self.shown_messages) / seconds
        self.byte_rate = (self.bytes - self.shown_bytes) / seconds
        self.shown_messages, self.shown_bytes = self.messages, self.bytes


class Watch:
    """Everything heard so far, by topic and source."""

    def __init__(self, slow: SlowWatch | None = None) -> None:
        self.slow = slow or SlowWatch(None)
        self.flows: dict[tuple[str, str], Flow] = collections.defaultdict(Flow)
        self.naks = NakWatch()
        self.left_out = 0  # rows of the last table

    def add(self, batch: Batch) -> None:
        """Count the records of a batch, by topic and source at once."""
        records = batch.records
        pairs = records["topic"].astype(np.uint64) << np.uint64(32) | records["source"]
        for pair in np.unique(pairs):
            mine = records[pairs == pair]
            topic, source = batch.topics[int(pair) >> 32], batch.sources[int(pair) & 0xFFFFFFFF]
            self._count(self.flows[topic, source], mine)
        for event in map(batch.__getitem__, batch.events()):
            if event.count:
                self.flows[event.topic, event.source].lost += event.count

    def tick(self, seconds: float) -> None:
        """Begin a new interval."""
        self.slow.read()
        self.naks.read([source for _, source in self.flows])
        for flow in self.flows.values():
            flow.tick(seconds)
        for asking in self.naks.asking.values():
            asking.tick(seconds)

    @staticmethod
    def _count(flow: Flow, records: np.ndarray[Any, Any]) -> None:
        types = records["type"]
        data = (types == MessageType.DATA) | (types == MessageType.REQUEST)
        flow.messages += int(data.sum())
        flow.bytes += int(records["length"][data].sum())
        if data.any():
            flow.state = "live"
        if (types == MessageType.END_OF_SESSION).any():
            flow.state = "ended"
        elif (types == MessageType.BEGIN_OF_SESSION).any() and not data.any():
            flow.state = "joined"

    def rows(self, sort: str, limit: int) -> list[tuple[str, str, int, float, float, int, int | None, int | None, str]]:
        """The table, each row with the values of COLUMNS."""
        waiting = clients()
        rows = []
        for (topic, source), flow in self.flows.items():
            queues = waiting.get(_endpoint(source))
            receivers = None if queues is None else len(queues)
            slow = None if queues is None else sum(each > SLOW_BYTES for each in queues)
            rows.append(
                (topic, source, flow.messages, flow.rate, flow.byte_rate / 1e3, flow.lost, receivers, slow, flow.state)
            )
        rows.sort(key=lambda row: row[0])
        if sort in PLACES:
            place = PLACES[sort]
            rows.sort(key=lambda row: row[place] or 0, reverse=True)
        self.left_out = max(0, len(rows) - limit)
        return rows[:limit]


def _endpoint(source: str) -> str:
    """Address and port of a TCP source string (TCP:ADDRESS:PORT:...); empty for other transports."""
    parts = source.split(":")
    return ":".join(parts[1:3]) if parts[0] == "TCP" and len(parts) > 2 else ""


def clients(table: str = "/proc/net/tcp") -> dict[str, list[int]]:
    """For each listening endpoint of this host, the bytes that wait for each of its established connections."""
    result: dict[str, list[int]] = collections.defaultdict(list)
    try:
        lines = Path(table).read_text().splitlines()[1:]
    except OSError:
        return {}
    for line in lines:
        words = line.split()
        if words[3] != "01":  # TCP_ESTABLISHED
            continue
        address, port = words[1].split(":")
        octets = bytes.fromhex(address)[:: -1 if sys.byteorder == "little" else 1]
        endpoint = f"{'.'.join(map(str, octets))}:{int(port, 16)}"
        result[endpoint].append(int(words[4].split(":")[0], 16))
    return dict(result)


def _cells(row: tuple[Any, ...]) -> list[str]:
    topic, source, messages, rate, kilobytes, lost, receivers, slow, state = row
    unknown = ["-" if value is None else str(value) for value in (receivers, slow)]
    amounts = [_common.amount(messages), _common.amount(rate), _common.amount(kilobytes), str(lost)]
    return [topic, source, *amounts, *unknown, state]


def fitted(cells: list[list[str]], width: int) -> tuple[list[list[str]], int]:
    """The rows with topics and sources cut so that the table has at most so many columns; how many were cut.

    What a table has to leave out is the middle of long names; numbers always stay.
    """
    widths = [max(map(len, column)) for column in zip(COLUMNS, *cells)]
    room = max(16, width - sum(widths[2:]) - 2 * (len(COLUMNS) - 1))
    topic = min(widths[0], max(8, room // 2, room - widths[1]))
    source = min(widths[1], room - topic)
    cut = sum(len(row[0]) > topic or len(row[1]) > source for row in cells)
    return [[_cut(row[0], topic), _cut(row[1], source), *row[2:]] for row in cells], cut


def _cut(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    end = max(1, (width - 2) // 3)
    return f"{text[: width - 2 - end]}..{text[-end:]}"


def _left_out(watch: Watch, cut: int) -> str:
    """What the table does not show."""
    parts = []
    if watch.left_out:
        parts.append(f"{watch.left_out} more rows (--lines)")
    if cut:
        parts.append(f"names of {cut} rows cut (--wide)")
    return f"not shown: {'; '.join(parts)}" if parts else ""


def _title(watch: Watch, dropped: int) -> str:
    total = sum(flow.rate for flow in watch.flows.values())
    lost = sum(flow.lost for flow in watch.flows.values())
    topics = len({topic for topic, _ in watch.flows})
    own = f"; {dropped} of these because um top itself is too slow" if dropped else ""
    blind = "" if watch.naks.works else _blind(watch)
    monitored = f"; records of {heard} processes" if (heard := watch.slow.heard()["processes"]) else ""
    sums = f"{topics} topics, {len(watch.flows)} sources, {_common.amount(total)} msg/s, {lost} lost"
    return f"{sums}{own}{blind}{monitored}"


def _blind(watch: Watch) -> str:
    return "; NAKs: needs root" if any(is_repaired(source) for _, source in watch.flows) else ""


def _nak_cells(watch: Watch) -> list[list[str]]:
    return [
        [receiver, session, _common.amount(asking.naks), _common.amount(asking.rate)]
        for receiver, session, asking in watch.naks.ranking()[:NAK_LINES]
    ]


def _slow_cells(watch: Watch) -> list[list[str]]:
    return [
        [each.application or "-", each.host, str(each.process), " ".join(each.topics), ", ".join(each.reasons)]
        for each in watch.slow.ranking()
    ]


class _Plain:
    """One table after the other."""

    def __init__(self, width: int) -> None:
        self._width = width

    def show(self, watch: Watch, rows: list[Any], dropped: int) -> None:
        print(_title(watch, dropped))
        cells, cut = fitted([_cells(row) for row in rows], self._width)
        print(_common.plain_table(COLUMNS, cells, RIGHT))
        if left_out := _left_out(watch, cut):
            print(left_out)
        print(flush=True)
        naks = _nak_cells(watch)
        if naks:
            print(_common.plain_table(NAK_COLUMNS, naks, NAK_RIGHT) + "\n", flush=True)
        slow = _slow_cells(watch)
        if slow:
            print(_common.plain_table(SLOW_COLUMNS, slow, SLOW_RIGHT) + "\n", flush=True)

    def close(self) -> None: ...


class _Json:
    """One object for each row; those of one look have the same time."""

    def show(self, watch: Watch, rows: list[Any], dropped: int) -> None:
        names = (
            "topic",
            "source",
            "messages",
            "messages_per_s",
            "kilobytes_per_s",
            "lost",
            "receivers",
            "slow",
            "state",
        )
        now = round(time.time(), 3)
        for row in rows:
            print(json.dumps({"time": now, **dict(zip(names, row))}))
        for receiver, session, asking in watch.naks.ranking():
            told = {"receiver": receiver, "source": session, "naks": asking.naks, "naks_per_s": asking.rate}
            print(json.dumps({"time": now, **told}))
        if (heard := watch.slow.heard())["processes"]:
            print(json.dumps({"time": now, "monitored": heard}))
        for each in watch.slow.ranking():
            print(json.dumps({"time": now, **each._asdict()}))
        sys.stdout.flush()

    def close(self) -> None: ...


class _Rich:
    """One table that changes in its place."""

    def __init__(self, width: int) -> None:
        from rich.live import Live

        self._width = width - 2 * len(COLUMNS)  # borders

        self._live = Live(auto_refresh=False)
        self._live.start()

    def show(self, watch: Watch, rows: list[Any], dropped: int) -> None:
        from rich.console import Group
        from rich.markup import escape
        from rich.table import Table

        table = Table(title=_title(watch, dropped), title_justify="left")
        for place, name in enumerate(COLUMNS):
            table.add_column(name, justify="right" if place in RIGHT else "left", no_wrap=True)
        shown, cut = fitted([_cells(row) for row in rows], self._width)
        table.caption = _left_out(watch, cut) or None
        for row, texts in zip(rows, shown):
            bad = row[5] or row[7]
            table.add_row(*map(escape, texts), style="red" if bad else "dim" if row[8] == "ended" else None)
        tables = [table]
        for columns, right, rows_of in (
            (NAK_COLUMNS, NAK_RIGHT, _nak_cells(watch)),
            (SLOW_COLUMNS, SLOW_RIGHT, _slow_cells(watch)),
        ):
            if rows_of:
                below = Table(title_justify="left")
                for place, name in enumerate(columns):
                    below.add_column(name, justify="right" if place in right else "left", no_wrap=True)
                for cells in rows_of:
                    below.add_row(*map(escape, cells))
                tables.append(below)
        self._live.update(Group(*tables), refresh=True)

    def close(self) -> None:
        self._live.stop()


def run(arguments: argparse.Namespace) -> int:
    """Show tables until COUNT or an interrupt."""
    settings = _common.settings(arguments)
    with settings.context() as ctx:
        watch = Watch(SlowWatch(None if arguments.no_records else ctx))
        receiver = WildcardReceiver(ctx, arguments.pattern, options=settings.wildcard())
        width = 10000 if arguments.wide else shutil.get_terminal_size((80, 24)).columns
        view = _Json() if arguments.json else _Rich(width) if _common.has_rich() else _Plain(width)
        try:
            shown, begin = 0, time.monotonic()
            while arguments.count is None or shown < arguments.count:
                left = begin + arguments.interval - time.monotonic()
                batch = receiver.recv_batch(timeout=max(0.0, left))
                if batch is not None:
                    watch.add(batch)
                now = time.monotonic()
                if now < begin + arguments.interval:
                    continue
                watch.tick(max(now - begin, 1e-3))
                view.show(watch, watch.rows(arguments.sort, arguments.lines), receiver.queue_stats().dropped)
                begin, shown = now, shown + 1
        finally:
            view.close()
            watch.naks.close()
            watch.slow.close()
    return 0
