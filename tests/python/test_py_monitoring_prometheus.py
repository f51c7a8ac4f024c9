"""Requirement S2: sent, delivered, lost, late and discarded of each source and receiver in Prometheus, as in Python."""

from __future__ import annotations

import pytest
from pairs import HANG, until

pytest.importorskip("prometheus_client")
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from um_cffi import Context, Receiver, Source
from um_cffi.monitoring import prometheus

LOCAL = {"default_interface": "127.0.0.1"}


def samples(registry: CollectorRegistry) -> dict[tuple[str, str], float]:
    """By name and topic, or source."""
    found = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):  # type: ignore[no-untyped-call]
        for sample in family.samples:
            found[sample.name, sample.labels.get("topic", sample.labels.get("transport", ""))] = sample.value
    return found


def test_s2_sent_delivered_lost_late_and_discarded_of_each_source_and_receiver() -> None:
    registry = CollectorRegistry()
    with Context(options=LOCAL) as ctx, Receiver(ctx, "prices") as receiver, Source(ctx, "prices") as source:
        prometheus.register(ctx, "orders", registry=registry)
        source.wait_receivers(timeout=HANG)
        for _ in range(100):
            source.send(b"x" * 10)
        source.flush()
        until(lambda: receiver.counts().delivered == 100)
        found = samples(registry)
        counts = receiver.counts()
        assert found["um_source_messages_sent_total", "prices"] == source.counts().messages_sent == 100
        assert found["um_source_bytes_sent_total", "prices"] == 1000 and found["um_source_receivers", "prices"] == 1
        for name in ("delivered", "missing", "lost", "late", "discarded", "duplicates"):
            assert found[f"um_receiver_{name}_total", "prices"] == getattr(counts, name)
        assert found["um_receiver_queue_queued_messages", "prices"] >= 100, "its beginning waits, too"
        assert found["um_receiver_messages_total", "tcp"] == 100 and found["um_source_clients", "tcp"] == 1
        assert found["um_context_receiver_topics", ""] == 1 and found["um_left_out", ""] == 0


def test_nothing_is_told_of_a_closed_context_and_a_forgotten_one() -> None:
    registry = CollectorRegistry()
    ctx = Context(options=LOCAL)
    prometheus.register(ctx, registry=registry)
    assert samples(registry)
    ctx.close()
    assert not samples(registry)
    del ctx
    assert not samples(registry)


def test_objects_beyond_the_limit_are_counted_and_left_out() -> None:
    registry = CollectorRegistry()
    with Context(options=LOCAL) as ctx:
        sources = [Source(ctx, f"t{number}") for number in range(5)]
        prometheus.register(ctx, registry=registry, limit=3)
        found = samples(registry)
        assert sum(name == "um_source_messages_sent_total" for name, _ in found) == 3
        families = text_string_to_metric_families(generate_latest(registry).decode())  # type: ignore[no-untyped-call]
        (left,) = [family for family in families if family.name == "um_left_out"]
        assert {sample.labels["what"]: sample.value for sample in left.samples} == {"sources": 2, "receivers": 0}
        del sources


def test_two_receivers_of_a_topic_are_told_apart() -> None:
    registry = CollectorRegistry()
    with Context(options=LOCAL) as ctx:
        both = [Receiver(ctx, "same") for _ in range(2)]
        prometheus.register(ctx, registry=registry)
        text = generate_latest(registry).decode()  # type: ignore[no-untyped-call]
        assert 'number="1",topic="same"' in text and 'number="2",topic="same"' in text
        del both
