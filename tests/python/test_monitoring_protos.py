"""The .proto files of monitoring: they compile, and every message has the fields it is known by on the wire."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor
from monitoring_messages import pool_of

from um_cffi.monitoring._pb import LogMonMsg

ROOT = Path(__file__).resolve().parents[2]
PROTOS = ROOT / "proto"


@pytest.fixture(name="pool", scope="module")
def descriptors(tmp_path_factory: pytest.TempPathFactory) -> descriptor_pool.DescriptorPool:
    return pool_of(PROTOS, tmp_path_factory.mktemp("set"))


def fields(message: Descriptor) -> list[tuple[str, int]]:
    return [(field.name, field.number) for field in message.fields]


def test_the_records_carry_attributes_first(pool: descriptor_pool.DescriptorPool) -> None:
    for name in ("UMSMonMsg", "UMPMonMsg", "DROMonMsg", "SRSMonMsg"):
        first = pool.FindMessageTypeByName(f"lbmmon.{name}").fields_by_number[1]
        assert first.name == "attributes" and first.message_type is not None
        assert first.message_type.name == "UMMonAttributes"


@pytest.mark.parametrize(
    "name, count, some",
    [
        ("UMMonAttributes", 7, {"sender_ipv4_address": 1, "context_instance": 6, "domain_id": 7}),
        ("UMMonControlMsg", 4, {"command": 1, "node_type": 2, "application_id": 3, "data": 4}),
        ("UMSMonMsg.Stats.Context", 24, {"tr_dgrams_sent": 1, "send_blocked": 8, "rcv_cb_svc_time_mean": 24}),
        ("UMSMonMsg.Stats.ReceiverTransport.LBTRM", 27, {"lost": 5, "lbm_reqs_rcved": 21, "out_of_order": 27}),
        ("UMSMonMsg.Stats.ReceiverTransport.LBTRU", 27, {"dgrams_dropped_other": 26, "dgrams_dropped_sid": 27}),
        ("UMSMonMsg.Stats.SourceTransport.LBTRM", 13, {"rx_bytes_sent": 11, "rctlr_rx_msgs": 13}),
        ("UMSMonMsg.Stats.SourceTransport.LBTRU", 10, {"num_clients": 10}),
        ("UMSMonMsg.Stats.EventQueue", 57, {"unblock_events": 36, "age_max": 52, "callback_events_svc_max": 57}),
        ("UMSMonMsg.Events.ReceiverTopic.Source", 6, {"otid": 2, "source_state": 4, "timestamp_usec": 6}),
        ("UMPMonMsg.Stats.SrcRepoStat", 22, {"topic_name": 2, "src_disk_stat": 21, "rcv_stats": 22}),
        ("DROMonMsg.Stats.Portal.Endpoint.Send", 47, {"data_bytes_enqueued_limit": 47}),
        ("DROMonMsg.Stats.Portal.Peer", 8, {"interest_regex_patterns": 4, "receive": 10, "udp_send": 13}),
        ("DROMonMsg.Stats.Portal.Peer.Send", 50, {"rtt_samples": 43, "unicast_msg_bytes_enqueued_limit": 50}),
        ("SRSMonMsg.Configs", 42, {"daemon_monitor_lbm_attributes": 41, "internal": 42}),
        ("SRSMonMsg.Events", 13, {"um_client_info": 1, "context_name_query_records": 13}),
    ],
)
def test_messages_have_their_fields(
    pool: descriptor_pool.DescriptorPool, name: str, count: int, some: dict[str, int]
) -> None:
    found = fields(pool.FindMessageTypeByName(f"lbmmon.{name}"))
    assert len(found) == count and set(some.items()) <= set(found)


def test_lines_of_logs_are_what_the_package_reads_of_them(pool: descriptor_pool.DescriptorPool) -> None:
    """A package of our own: the other schema stays as others know it."""
    for name in ("LogMonMsg", "LogMonMsg.Line"):
        read = LogMonMsg.DESCRIPTOR.file.pool.FindMessageTypeByName(f"openum.{name}")
        told = pool.FindMessageTypeByName(f"openum.{name}")
        assert fields(told) == fields(read) and [f.type for f in told.fields] == [f.type for f in read.fields]
