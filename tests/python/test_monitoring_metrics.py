"""A fleet as metrics: text that Prometheus reads, points for OpenTelemetry, alert rules and the dashboard."""

from __future__ import annotations

import json
import re
import subprocess
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from monitoring_records import SESSION, WHO, one_of_each
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families as plain_families

from um_cffi.monitoring import (
    Attributes,
    ContextRecord,
    ReceiverRecord,
    SourceRecord,
    TopicRecord,
    TopicState,
)
from um_cffi.monitoring._exporter import AHEAD, FRESH, Exporter, Texts
from um_cffi.monitoring._families import MEMBERS
from um_cffi.monitoring._fields import CONTEXT, EVENT_QUEUE, RECEIVERS, SOURCES, UNSET, is_level
from um_cffi.monitoring._otlp import Pusher
from um_cffi.monitoring._receiving import Monitor
from um_cffi.monitoring._text import FleetText
from um_cffi.monitoring.fleet import Fleet, Limits

ROOT = Path(__file__).resolve().parents[2]
PROMTOOL = ROOT / ".venv" / "brokers" / "promtool"  # see tools/bootstrap.sh
ALERTS = ROOT / "packaging" / "prometheus"
DASHBOARD = ROOT / "packaging" / "grafana" / "um-fleet.json"
ABOUT = {"host": "10.1.2.3", "application": "orders", "process": "4242", "context": "00112233445566ff", "object": "4d"}


def fleet_of_all() -> Fleet:
    fleet = Fleet()
    for at in (0.0, 1.0):
        for number, each in enumerate(one_of_each()):
            if isinstance(each, (SourceRecord, ReceiverRecord)):
                each = type(each)(each.attributes, each.transport, f"{each.source}:{number}", each.values)
            fleet.add(each, at)
    return fleet


def text(fleet: Fleet, open_metrics: bool = True) -> str:
    return b"".join(FleetText(fleet).render(2.0, open_metrics)).decode()


def samples(told: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in open_families(told + "# EOF\n"):  # type: ignore[no-untyped-call]
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found


def promtool(*arguments: str, given: str = "", folder: Path = ROOT) -> None:
    if not PROMTOOL.exists():
        pytest.skip("promtool is not here: tools/bootstrap.sh test")
    done = subprocess.run([PROMTOOL, *arguments], input=given, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_number_of_every_record_is_a_metric() -> None:
    told = {
        "source": {name for shape in SOURCES.values() for name in shape.csv},
        "receiver": {name for shape in RECEIVERS.values() for name in shape.csv} - {"reserved1"},
        "context": set(CONTEXT.csv),
        "event_queue": set(EVENT_QUEUE.csv),
    }
    assert {kind: set(members) for kind, members in MEMBERS.items()} == told


def test_names_and_units_follow_the_conventions() -> None:
    for members in MEMBERS.values():
        for field, (family, _, scale) in members.items():
            assert re.fullmatch(r"um_[a-z_]+", family.name) and not family.name.endswith("_total")
            assert (family.type == "gauge") == is_level(field)
            assert (scale != 1.0) == family.name.endswith("_seconds"), "base units only"
            assert family.help.endswith(".") and len(family.help) > 10


def test_open_metrics_has_every_number_with_the_labels_of_its_object() -> None:
    found = samples(text(fleet_of_all()))
    labels = {**ABOUT, "source": f"{SESSION}:3", "transport": "lbtrm"}
    assert ({**labels, "reason": "window"}, 1016.0) in found["um_receiver_unrecovered_datagrams_total"]
    assert (labels, 1000.0) in found["um_receiver_datagrams_total"]
    assert (labels, 1.010) in found["um_receiver_recovery_mean_seconds"]
    assert (ABOUT, 2.3e-05) in found["um_context_callback_mean_seconds"]
    assert ({**ABOUT, "event": "timer_events"}, 26.0) in found["um_event_queue_taken_total"]
    topics = {"topic": "prices, trades", "source": SESSION}
    assert any({**ABOUT, **topics} == told for told, _ in found["um_receiver_topic_info"])
    process = {name: ABOUT[name] for name in ("host", "application", "process")}
    assert found["um_process_up"] == [(process, 1.0)] and found["um_process_record_age_seconds"] == [(process, 1.0)]


def test_no_sample_is_there_twice() -> None:
    fleet = fleet_of_all()
    other = Attributes(**{**WHO.__dict__, "object_id": 78})
    fleet.add(ContextRecord(other, {}), 2.0)
    fleet.add(ReceiverRecord(Attributes(**{**WHO.__dict__, "immediate": True}), "lbtrm", f"{SESSION}:3", {}), 2.0)
    lines = [line.rpartition(" ")[0] for line in text(fleet).splitlines() if not line.startswith("#")]
    assert len(lines) == len(set(lines))


def test_the_older_text_format_is_served_too_and_pleases_promtool() -> None:
    told = text(fleet_of_all(), open_metrics=False)
    names = {family.name for family in plain_families(told)}
    assert {"um_receiver_datagrams", "um_receiver_topic_info", "um_process_up"} <= names
    promtool("check", "metrics", given=told)


def test_a_minimum_of_nothing_is_left_out() -> None:
    fleet = Fleet()
    fleet.add(ReceiverRecord(WHO, "lbtrm", SESSION, {"nak_stm_min": UNSET, "nak_stm_max": 0}), 0.0)
    found = samples(text(fleet))
    assert "um_receiver_recovery_min_seconds" not in found
    assert [value for _, value in found["um_receiver_recovery_max_seconds"]] == [0.0]


def test_x4_texts_of_strangers_stay_within_their_label() -> None:
    fleet = Fleet()
    evil = 'a"} 1\nforged{x="\\'
    fleet.add(SourceRecord(Attributes(application=evil), "tcp", evil, {"num_clients": 5}), 0.0)
    found = samples(text(fleet))
    assert [labels["source"] for labels, _ in found["um_source_clients"]] == [evil]
    assert "forged" not in found


def test_objects_that_are_gone_leave_the_text() -> None:
    fleet = fleet_of_all()
    writer = FleetText(fleet)
    assert b"orders" in b"".join(writer.render(2.0))
    fleet.expire(1000.0)
    assert b"orders" not in b"".join(writer.render(1000.0)) and not writer._labels


def test_s4_the_ranking_is_a_metric_with_host_process_and_topic() -> None:
    fleet = Fleet()
    fleet.add(TopicRecord(WHO, "prices", (TopicState(SESSION),)), 0.0)
    for at in range(3):
        fleet.add(ReceiverRecord(WHO, "lbtrm", SESSION, {"naks_sent": 100 * at}), float(at))
    (slow,) = samples(text(fleet))["um_slow_score"]
    assert {**ABOUT, "topic": "prices", "kind": "receiver"}.items() <= slow[0].items() and slow[1] > 1


# ---- texts are made once for all who scrape, in virtual time ----


def test_a_text_is_served_again_within_a_second() -> None:
    made: list[float] = []
    texts = Texts(lambda _, now: made.append(now) or [str(now).encode()])  # type: ignore[func-returns-value]
    for at in (10.0, 10.5, 10.9):
        assert texts.get(True, at) == [b"10.0"]
    assert texts.get(True, 10.0 + FRESH + 0.1) == [b"11.1"] and made == [10.0, 11.1]
    assert texts.get(False, 11.2) == [b"11.2"], "another format is another text"


def test_a_text_is_made_before_the_next_scrape_is_expected_and_dropped_later() -> None:
    made: list[float] = []
    texts = Texts(lambda _, now: made.append(now) or [b"x"])  # type: ignore[func-returns-value]
    clock = 0.0
    for tick in range(1200):
        clock = tick / 10
        if tick in (0, 150, 300, 450):
            before = len(made)
            texts.get(True, clock)
            assert tick < 300 or len(made) == before, "it was there"
        texts.prepare(clock)
    assert made == [0.0, 15.0, pytest.approx(30 - AHEAD), pytest.approx(45 - AHEAD), pytest.approx(60 - AHEAD)]
    assert not texts._made


def test_the_exporter_tells_about_itself() -> None:
    fleet = fleet_of_all()
    with Monitor(udp=":0") as monitor:
        exporter = Exporter(monitor, fleet)
        told = b"".join(exporter._render(True, 2.0)).decode()
        names = {family.name for family in open_families(told)}  # type: ignore[no-untyped-call]
        assert {"um_exporter_records", "um_exporter_malformed_packets", "um_exporter_objects"} <= names
        plain = b"".join(exporter._render(False, 2.0)).decode()
        promtool("check", "metrics", given=plain)


# ---- OpenTelemetry ----


class Collector:
    def __init__(self, works: bool) -> None:
        self.works = works

    def export(self, data: Any) -> Any:
        from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
        from opentelemetry.sdk.metrics.export import MetricExportResult

        self.encoded = encode_metrics(data)
        return MetricExportResult.SUCCESS if self.works else MetricExportResult.FAILURE

    def shutdown(self) -> None: ...


def test_points_of_opentelemetry_are_the_same_numbers() -> None:
    pytest.importorskip("opentelemetry.sdk")
    collector = Collector(works=True)
    pusher = Pusher(fleet_of_all(), exporter=collector)
    assert pusher.send(pusher.collect(1_700_000_000_000_000_000)) and pusher.sent == 1
    (scope,) = collector.encoded.resource_metrics[0].scope_metrics
    metrics = {metric.name: metric for metric in scope.metrics}
    lost = metrics["um.receiver_lost_datagrams"]
    assert lost.sum.is_monotonic and {point.as_int for point in lost.sum.data_points} == {1004}
    mean = metrics["um.receiver_recovery_mean_seconds"]
    assert mean.unit == "s" and {round(point.as_double, 3) for point in mean.gauge.data_points} == {1.010}
    assert {"um.process_up", "um.context_blocked_sends", "um.event_queue_taken"} <= set(metrics)


def test_a_collector_that_is_down_is_counted() -> None:
    pytest.importorskip("opentelemetry.sdk")
    pusher = Pusher(fleet_of_all(), exporter=Collector(works=False))
    assert not pusher.send(pusher.collect(1)) and (pusher.sent, pusher.failed) == (0, 1)


def test_objects_that_are_gone_leave_no_points_behind() -> None:
    pytest.importorskip("opentelemetry.sdk")
    fleet = fleet_of_all()
    pusher = Pusher(fleet, exporter=Collector(works=True))
    pusher.collect(1)
    fleet.expire(1000.0)
    assert pusher.collect(2).resource_metrics[0].scope_metrics[0].metrics == []


# ---- alert rules and the dashboard ----


def metric_names() -> set[str]:
    families = {member.family for members in MEMBERS.values() for member in members.values()}
    names = {family.sample for family in families}
    names |= {"um_receiver_topic_info", "um_process_up", "um_process_record_age_seconds", "um_slow_score"}
    with Monitor(udp=":0") as monitor:
        own = b"".join(Exporter(monitor, Fleet())._render(False, 0.0)).decode()
    return names | set(re.findall(r"^# TYPE (\S+) ", own, re.M))


def test_s4_alert_rules_name_who_is_silent_and_who_loses() -> None:
    promtool("check", "rules", "um-alerts.yml", folder=ALERTS)
    promtool("test", "rules", "um-alerts-test.yml", folder=ALERTS)


def test_every_alert_is_tried() -> None:
    rules, tests = (ALERTS / "um-alerts.yml").read_text(), (ALERTS / "um-alerts-test.yml").read_text()
    tried = set(re.findall(r"alertname: (\w+)", tests))
    assert set(re.findall(r"- alert: (\w+)", rules)) == tried


def test_alerts_and_dashboard_use_metrics_that_exist(tmp_path: Path) -> None:
    known = metric_names()
    dashboard = json.loads(DASHBOARD.read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(queries) >= 20
    for about in (*queries, (ALERTS / "um-alerts.yml").read_text()):
        used = {name for name in re.findall(r"\bum_[a-z_]+\b", about)}
        assert used <= known, used - known
    rules = [
        {"record": f"panel:{at}", "expr": query.replace("$__rate_interval", "1m")} for at, query in enumerate(queries)
    ]
    (tmp_path / "panels.yml").write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", str(tmp_path / "panels.yml"))


def test_panels_do_not_overlap_and_have_their_own_numbers() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_x4_an_exporters_memory_is_flat_over_an_hour_of_churn_in_virtual_time() -> None:
    """Objects come and go, and are scraped each ten seconds in both forms: what is kept for texts goes with them."""
    fleet = Fleet(Limits(objects=300, processes=100, expire_after=20.0))
    sizes = []
    with Monitor(udp=":0") as monitor:
        exporter = Exporter(monitor, fleet)
        tracemalloc.start()
        try:
            for second in range(3600):
                for number in range(4):
                    about = Attributes(
                        "10.1.2.3", 0, f"app {second // 30}", number, number, False, f"{second // 30:016x}"
                    )
                    fleet.add(
                        ReceiverRecord(about, "tcp", f"TCP:{number}:{second}", {"bytes_rcved": second}), float(second)
                    )
                    fleet.add(ContextRecord(about, {"tr_dgrams_sent": second}), float(second))
                if second % 10 == 0:
                    told = [b"".join(exporter.texts.get(form, float(second))) for form in (True, False)]
                    assert all(b'application="app %d"' % (second // 30) in each for each in told)
                exporter.texts.prepare(float(second))
                if second % 600 == 599:
                    sizes.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
    assert fleet.counts.objects_expired > 10_000 and len(fleet) <= 300
    assert max(sizes[1:]) - sizes[1] < 1 << 20, sizes
