"""A fleet as metrics of OpenTelemetry, pushed over OTLP. Needs opentelemetry-sdk and its exporter for HTTP.

The data points are made directly, without instruments of the SDK: those remember every set of labels for ever, and
objects come and go. Points are made on the thread of the Fleet, sent on another one.
"""

from __future__ import annotations

from typing import Any

from um_cffi.monitoring import _fields
from um_cffi.monitoring._families import MEMBERS, Family
from um_cffi.monitoring._text import UP, labels_of
from um_cffi.monitoring.fleet import Fleet


def _pair(label: str) -> dict[str, str]:
    name, _, value = label.partition("=")
    return {name: value.strip('"')} if name else {}


def otlp_name(family: Family) -> tuple[str, str]:
    """Name and unit as OpenTelemetry has them: dots, and the unit beside the name."""
    name, unit = family.name, "1"
    for suffix, symbol in (("_seconds", "s"), ("_bytes", "By")):
        if name.endswith(suffix):
            unit = symbol
    return name.replace("um_", "um.", 1), unit


class Pusher:
    """Makes data points of a Fleet and gives them to an exporter."""

    def __init__(self, fleet: Fleet, url: str | None = None, exporter: Any = None) -> None:
        """`url` is that of a collector's metrics (None: as the environment says). ImportError without the packages."""
        from opentelemetry.sdk.metrics import export
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        if exporter is None:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

            exporter = OTLPMetricExporter(endpoint=url)
        self._export = export
        self._exporter = exporter
        self._fleet = fleet
        self._resource = Resource.create({"service.name": "um-exporter"})
        self._scope = InstrumentationScope("um_cffi.monitoring")
        self._begin = 0
        self.sent = 0  #: times that it succeeded
        self.failed = 0  #: times that it did not

    def collect(self, now_ns: int) -> Any:
        """All points of the fleet; `now_ns` is the time of day in nanoseconds. On the fleet's thread."""
        export = self._export
        self._begin = self._begin or now_ns
        points: dict[Family, list[Any]] = {}
        for each in self._fleet.objects():
            members = MEMBERS.get(each.kind)
            if not members or not each.numbers:
                continue
            about = {name: value for name, value in labels_of(each).items() if value}
            for name, number in zip(each.names, each.numbers):
                member = members.get(name)
                if member is None or number == _fields.UNSET:
                    continue
                value = number if member.scale == 1.0 else number * member.scale
                attributes = {**about, **_pair(member.label)}
                points.setdefault(member.family, []).append(self._point(attributes, value, now_ns))
        for process in self._fleet.processes():
            about = {"host": process.host, "application": process.application, "process": str(process.process_id)}
            points.setdefault(UP, []).append(self._point(about, 0 if process.silent else 1, now_ns))
        metrics = [self._metric(family, found) for family, found in points.items()]
        scope = export.ScopeMetrics(scope=self._scope, metrics=metrics, schema_url="")
        resource = export.ResourceMetrics(resource=self._resource, scope_metrics=[scope], schema_url="")
        return export.MetricsData(resource_metrics=[resource])

    def _point(self, attributes: dict[str, str], value: float, now_ns: int) -> Any:
        # Numbers of 64 bits that OTLP has no room for, as it counts in signed ones, do not occur in what counts.
        fits = value if value < 2**63 else 2**63 - 1
        return self._export.NumberDataPoint(
            attributes=attributes, start_time_unix_nano=self._begin, time_unix_nano=now_ns, value=fits
        )

    def _metric(self, family: Family, points: list[Any]) -> Any:
        export = self._export
        name, unit = otlp_name(family)
        if family.type == "counter":
            cumulative = export.AggregationTemporality.CUMULATIVE
            data: Any = export.Sum(data_points=points, aggregation_temporality=cumulative, is_monotonic=True)
        else:
            data = export.Gauge(data_points=points)
        return export.Metric(name=name, description=family.help, unit=unit, data=data)

    def send(self, data: Any) -> bool:
        """Give the points to the exporter, which waits for the collector. Any thread, one at a time."""
        done = bool(self._exporter.export(data) == self._export.MetricExportResult.SUCCESS)
        self.sent, self.failed = self.sent + done, self.failed + (not done)
        return done

    def close(self) -> None:
        """End the exporter."""
        self._exporter.shutdown()
