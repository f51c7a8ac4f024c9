"""The exporter of a fleet: records in by a Monitor, metrics out by HTTP and OTLP, all on one event loop.

`um exporter` runs it in a process of its own; it sends nothing to the processes it tells of.
"""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

from um_cffi.monitoring._http import Answer, HttpServer, Request
from um_cffi.monitoring._receiving import Monitor
from um_cffi.monitoring._text import FleetText
from um_cffi.monitoring.fleet import Fleet

OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PLAIN = "text/plain; version=0.0.4; charset=utf-8"
FRESH = 1.0  # seconds for which a text is served again
AHEAD = 0.3  # seconds before the next scrape is expected that a text is made for it


class Texts:
    """The text of a fleet for those who scrape: made for one, served to all within a second.

    A scrape that comes as regularly as Prometheus does finds its text made a moment before. Time is given to it.
    """

    def __init__(self, render: Callable[[bool, float], list[bytes]]) -> None:
        self._render = render
        self._made: dict[bool, tuple[float, list[bytes]]] = {}
        self._last: dict[bool, float] = {}  # scrapes
        self._next: dict[bool, float] = {}
        self.seconds = 0.0  #: that making the last one took

    def get(self, open_metrics: bool, now: float) -> list[bytes]:
        """The text for a scrape at `now`."""
        last = self._last.get(open_metrics)
        if last is not None and FRESH < now - last < 120.0:
            self._next[open_metrics] = now + (now - last)
        self._last[open_metrics] = now
        at, text = self._made.get(open_metrics, (now - 2 * FRESH, []))
        return text if now - at <= FRESH else self._make(open_metrics, now)

    def prepare(self, now: float) -> None:
        """Make what is expected to be asked for in a moment, and drop what is not asked for any more."""
        for form, expected in list(self._next.items()):
            if now >= expected - AHEAD:
                del self._next[form]
                self._make(form, now)
        for form, (at, _) in list(self._made.items()):
            if now - at > 10 * FRESH:
                del self._made[form]

    def _make(self, form: bool, now: float) -> list[bytes]:
        begin = time.perf_counter()
        text = self._render(form, now)
        self.seconds = time.perf_counter() - begin
        self._made[form] = (now, text)
        return text


class Exporter:
    """Takes records from `monitor` into `fleet` and serves them by `server`, made by it from `limits` and `token`."""

    def __init__(self, monitor: Monitor, fleet: Fleet, token: str | None = None) -> None:
        from prometheus_client import CollectorRegistry, ProcessCollector

        self.monitor = monitor
        self.fleet = fleet
        self.server = HttpServer(self._page, token=token)
        self.texts = Texts(self._render)
        self._writer = FleetText(fleet)
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        self._pusher: Any = None
        self._last = time.monotonic()
        self._started = time.monotonic()

    # ---- pages ----

    def _page(self, request: Request) -> Answer:
        now = time.monotonic()
        if request.path == "/metrics":
            wants = "application/openmetrics-text" in request.headers.get("accept", "")
            return Answer(self.texts.get(wants, now), OPEN_METRICS if wants else PLAIN)
        if request.path in ("/health", "/healthz"):
            return Answer((json.dumps(self.health(now)).encode() + b"\n",), "application/json")
        if request.path == "/":
            return Answer((b"um exporter: /metrics for Prometheus, /health for a look at it\n",))
        return Answer((b"Not Found\n",), status=404)

    def health(self, now: float) -> dict[str, object]:
        """What /health tells: how long it runs, and since when no record has come."""
        summary = self.fleet.summary()
        return {
            "status": "ok",
            "uptime_seconds": round(now - self._started, 3),
            "last_record_seconds": round(now - self._last, 3) if self.fleet.counts.records else None,
            "objects": len(self.fleet),
            **{name: summary[name] for name in ("processes", "silent", "records")},
        }

    def _render(self, open_metrics: bool, now: float) -> list[bytes]:
        from prometheus_client import exposition
        from prometheus_client.openmetrics import exposition as open_exposition

        self.fleet.expire(now)  # who is silent by now is told so
        own = (open_exposition if open_metrics else exposition).generate_latest(self._registry)
        return [*self._writer.render(now, open_metrics), own]

    def collect(self) -> Iterator[Any]:
        """For prometheus_client: what the exporter tells about itself."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        counts, fleet, http = self.monitor.counts(), self.fleet.counts, self.server.counts
        for name, value, told in (
            ("packets", counts.packets, "Monitoring packets decoded."),
            ("records", counts.records, "Monitoring records in these."),
            ("refused_packets", counts.refused, "Packets that came faster than is let in."),
            ("dropped_packets", counts.dropped, "Packets lost as they came faster than they were taken."),
            ("refused_log_lines", fleet.refused_lines, "Lines of logs beyond the limits, or of unknown processes."),
            ("cut_texts", fleet.cut_texts, "Records with texts too long to be kept whole."),
            ("objects_created", fleet.objects_created, "Objects that records told of for the first time."),
            ("objects_expired", fleet.objects_expired, "Objects removed as nothing more came about them."),
            ("http_refused_clients", http.too_many, "Connections refused, as there were too many."),
            ("http_unread_answers", http.unread, "Answers that were not read in time."),
            ("http_broken_connections", http.broken, "Connections that ended before their request or answer did."),
        ):
            yield CounterMetricFamily(f"um_exporter_{name}", told, value=value)
        malformed = CounterMetricFamily(
            "um_exporter_malformed_packets", "Packets that were no record.", labels=["reason"]
        )
        for reason, value in counts.malformed.items():
            malformed.add_metric([reason], value)
        yield malformed
        refused = CounterMetricFamily(
            "um_exporter_refused_records", "Records of new objects for which there was no room.", labels=["limit"]
        )
        for limit in ("objects", "origin", "processes"):
            refused.add_metric([limit], getattr(fleet, f"refused_{limit}"))
        yield refused
        answered = CounterMetricFamily("um_exporter_http_requests", "Requests answered.", labels=["code"])
        for status, value in sorted(http.answered.items()):
            answered.add_metric([str(status)], value)
        yield answered
        yield GaugeMetricFamily("um_exporter_objects", "Objects known now.", value=len(self.fleet))
        yield GaugeMetricFamily(
            "um_exporter_render_seconds", "Time the last text took to make.", value=self.texts.seconds
        )
        if self._pusher is not None:
            pushed = CounterMetricFamily("um_exporter_otlp_pushes", "Pushes over OTLP.", labels=["result"])
            pushed.add_metric(["sent"], self._pusher.sent)
            pushed.add_metric(["failed"], self._pusher.failed)
            yield pushed

    # ---- running ----

    async def run(
        self, host: str, port: int, ready: Callable[[], None], pusher: Any = None, push_seconds: float = 10.0
    ) -> None:
        """Serve until SIGINT or SIGTERM; `ready` is called when it listens. OSError if it cannot."""
        over = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, over.set)
        await self.server.start(host, port)
        self._pusher = pusher
        work = [self._take(), self._tick()]
        if pusher is not None:
            work.append(self._push(pusher, push_seconds))
        tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(each) for each in work]
        waiting: asyncio.Future[Any] = asyncio.ensure_future(over.wait())
        try:
            ready()
            await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()  # raises what ended it
        finally:
            for task in (waiting, *tasks):
                task.cancel()
            await asyncio.gather(waiting, *tasks, return_exceptions=True)
            await self.server.close()
            if pusher is not None:
                pusher.close()

    async def _take(self) -> None:
        while True:
            arrivals = await self.monitor.apoll(1.0)
            now = time.monotonic()
            for arrival in arrivals:
                self.fleet.add(arrival.record, now, arrival.origin)
            if arrivals:
                self._last = now
            await asyncio.sleep(0)  # others have their turn, however much comes

    async def _tick(self) -> None:
        expired = 0.0
        while True:
            await asyncio.sleep(0.1)
            now = time.monotonic()
            self.texts.prepare(now)
            if now - expired >= 1.0:
                expired = now
                self.fleet.expire(now)

    async def _push(self, pusher: Any, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(seconds)
            data = pusher.collect(time.time_ns())
            await loop.run_in_executor(None, pusher.send, data)
