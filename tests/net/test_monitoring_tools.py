"""Protobuf records of monitoring and the programs that receive them: what the API counts is what Python decodes with
the installed .proto files and what lbmmon and its kin show. Each on a host of its own, over loopback.
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hosts import BUILD, Host, Process
from monitoring_messages import compiler, message_class, pool_of

from um_cffi.monitoring._fields import CONTEXT, EVENT_QUEUE, RECEIVERS, SOURCES

Config = Callable[..., str]
ROOT = Path(__file__).resolve().parents[2]
UDP = ("-t", "udp", "--transport-opts=address=127.0.0.1;port=2933")
SMX = "context transport_lbtsmx_message_statistics_enabled 1"
QUEUE = [f"event_queue {name} 1" for name in ("queue_count_enabled", "queue_age_enabled", "queue_service_time_enabled")]
LOG = 0x554D  # packets with lines of the log
TRANSPORTS = ["tcp", "lbtrm", "lbtru", "lbtipc", "lbtsmx"]
KINDS = {"source": 0, "receiver": 1, "queue": 2, "context": 3}


@pytest.fixture(name="installed", scope="module")
def installed_protos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    stage = tmp_path_factory.mktemp("stage")
    install = ["cmake", "--install", str(BUILD), "--component", "development", "--prefix", "/opt/um"]
    subprocess.run(install, check=True, capture_output=True, env={**os.environ, "DESTDIR": str(stage)})
    return stage / "opt/um/share/libum/proto"


@pytest.fixture(name="record", scope="module")
def record_class(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return message_class(pool_of(installed, tmp_path_factory.mktemp("set")), "UMSMonMsg")


def parts(packet: bytes) -> tuple[int, bytes]:
    """Type and data of a packet, whose lengths add up."""
    signature, kind, attributes, data, _ = struct.unpack_from(">IHHHH", packet)
    assert signature == 0x1B33041B and 12 + attributes + data == len(packet)
    return kind, packet[12 + attributes :]


def sampled(host: Host, config: str, transport: str) -> tuple[list[bytes], dict[str, list[int]], list[str]]:
    """Packets of mon_sampler, what the API read at that moment, and the names of source and receiver session."""
    program = str(BUILD / "tests" / "support" / "mon_sampler")
    lines = host.start_command(program, config, transport).finish().splitlines()
    packets = [bytes.fromhex(line.split()[1]) for line in lines if line.startswith("packet ")]
    told = {line.split()[0]: [int(n) for n in line.split()[1:]] for line in lines if line.split()[0] in KINDS}
    (names,) = (line.split()[1:] for line in lines if line.startswith("names "))
    return packets, told, names


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_field_is_what_the_api_reads_at_that_moment(
    host: Host, loopback_config: Config, record: Any, transport: str
) -> None:
    packets, told, names = sampled(host, loopback_config(*QUEUE, SMX), transport)
    shapes = {
        "source": SOURCES[transport],
        "receiver": RECEIVERS[transport],
        "context": CONTEXT,
        "queue": EVENT_QUEUE,
    }
    seen = set()
    for packet in packets:
        kind, data = parts(packet)
        if kind == LOG:
            continue
        message = record.FromString(data)
        assert message.attributes.application_id == "sampler" and message.attributes.process_id > 0
        assert message.attributes.sender_ipv4_address == "127.0.0.1" and message.attributes.timestamp > 0
        stats = message.stats
        if kind == KINDS["source"]:
            (each,) = stats.source_transports
            name, body = "source", getattr(each, transport)
            immediate = each.source_flag == 1
        elif kind == KINDS["receiver"]:
            (each,) = stats.receiver_transports
            name, body = "receiver", getattr(each, transport)
            immediate = each.source_flag == 1
        else:
            immediate = False
            name, body = ("queue", stats.event_queues[0]) if kind == KINDS["queue"] else ("context", stats.context)
        if immediate or not hasattr(body, "DESCRIPTOR"):
            continue
        if name in ("source", "receiver"):
            if each.source_string not in names:
                continue
            assert each.WhichOneof("transport_type") == transport
        values = dict(zip(shapes[name].csv, told[name]))
        fields = [field.name for field in body.DESCRIPTOR.fields]
        assert {field: getattr(body, field) for field in fields} == {field: values[field] for field in fields}
        assert set(values) - set(fields) <= {"reserved1"}
        seen.add(name)
    assert seen == set(KINDS)
    assert told["receiver"][RECEIVERS[transport].csv.index("lbm_msgs_rcved")] >= 10
    assert told["queue"][EVENT_QUEUE.csv.index("data_msgs_tot")] >= 10


def test_a_record_is_decoded_by_the_compiler_of_protobuf(host: Host, loopback_config: Config, installed: Path) -> None:
    packets, told, _ = sampled(host, loopback_config(), "tcp")
    (data,) = (data for kind, data in map(parts, packets) if kind == KINDS["context"])
    command = [compiler(), f"--proto_path={installed}", "--decode=lbmmon.UMSMonMsg", "ums_mon.proto"]
    text = subprocess.run(command, input=data, capture_output=True, check=True).stdout.decode()
    assert 'application_id: "sampler"' in text
    assert f"tr_dgrams_sent: {told['context'][0]}\n" in text


def monitored(host: Host, config: str, fmt: str, *flags: object) -> Process:
    """An lbmsrc that sends records of its source each second until it is told to go on."""
    opts = "--monitor-transport-opts=address=127.0.0.1;port=2933"
    flags = ("--monitor-transport=udp", opts, f"--monitor-format={fmt}", f"--monitor-appid=Desk {fmt}", *flags)
    return host.start("lbmsrc", "-c", config, "-d", 0, "-M", 5, "-L", 3600, *flags, "t")


def test_lbmmon_prints_contexts_and_sources_with_their_labels(host: Host, loopback_config: Config) -> None:
    monitor = host.start("lbmmon", *UDP)
    source = monitored(host, loopback_config("source transport lbtrm"), "csv", "--monitor-ctx=1")
    about = r"from Desk csv at 127\.0\.0\.1, process ID=[0-9a-f]+, object ID=[0-9a-f]+, context instance=[0-9a-f]{16}"
    monitor.expect(rf"^Context statistics received {about}(, domain ID=\d+)?, sent \w{{3}} \w{{3}} .* \d{{4}}$")
    monitor.expect(r"^\tReceiver callbacks mean service time \(microseconds\): \d+$")
    monitor.expect(rf"^Source statistics received {about}.*\nSource: LBTRM:127\.0\.0\.1:.*\nTransport: LBT-RM$")
    monitor.expect(r"^\tLBT-RM datagrams sent                                 : [1-9]\d*$")
    source.stop_lingering()
    monitor.signal(15)
    monitor.finish()


@pytest.mark.parametrize("fmt", ["csv", "pb"])
def test_with_passthrough_records_of_both_formats_are_printed(host: Host, loopback_config: Config, fmt: str) -> None:
    """Acceptance check 11: lbmmon converts what is CSV and prints both."""
    monitor = host.start("lbmmon", f"--format={fmt}", "--format-opts=passthrough=convert", *UDP)
    config = loopback_config("source transport tcp")
    sources = [monitored(host, config, each, "--monitor-src=1") for each in ("csv", "pb")]
    for each in ("csv", "pb"):
        monitor.expect(rf"^Source statistics received from Desk {each} at .*\nSource: TCP:.*\nTransport: TCP$")
    for source in sources:
        source.stop_lingering()
    assert "ERROR" not in monitor.output


def test_a_converted_record_equals_that_of_a_protobuf_sender(host: Host, loopback_config: Config) -> None:
    """Acceptance check 7, by --json, which shows the UMSMonMsg of a record."""
    monitor = host.start("lbmmon", "--json", "--format-opts=passthrough=convert", *UDP)
    config = loopback_config("source transport lbtrm")
    sources = [monitored(host, config, each, "--monitor-src=1") for each in ("csv", "pb")]
    found: dict[str, Any] = {}
    for each in ("csv", "pb"):
        line = monitor.expect(rf'^\{{"type":"UMSMonMsg".*"application_id":"Desk {each}".*"msgs_sent":[1-9].*$').group(0)
        found[each] = json.loads(line)["message"]
    for source in sources:
        source.stop_lingering()
    for message in found.values():
        attributes = message["attributes"]
        assert attributes["sender_ipv4_address"] == "127.0.0.1"
        assert re.fullmatch("[0-9a-f]{16}", attributes["context_instance"])
    shapes = [json.dumps(message) for message in found.values()]
    masked = [re.sub(r" \d+|\"(LBTRM:[^\"]*|Desk \w+|[0-9a-f]{16})\"", "N", shape) for shape in shapes]
    assert masked[0] == masked[1]
    (transport,) = found["csv"]["stats"]["source_transports"]
    assert len(transport["lbtrm"]) == 13 and transport["lbtrm"]["txw_msgs"] >= 1


def test_lbmmonudp_sends_lines_of_decimal_numbers(host: Host, loopback_config: Config, tmp_path: Path) -> None:
    listener = host.start_command(
        "python3",
        "-c",
        "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.bind(('127.0.0.1', 1234))\n"
        "print('ready', flush=True)\nwhile True: print(s.recv(65536).decode(), end='', flush=True)",
    )
    listener.expect("^ready")
    forward = host.start("lbmmonudp", "-a", "127.0.0.1", "-3", *UDP)
    config = loopback_config("source transport lbtrm", *QUEUE)
    source = monitored(host, config, "csv", "--monitor-ctx=1")
    context = listener.expect(r'^8,\d{10},"127\.0\.0\.1","Desk csv"," "((?:,\d+)+)$').group(1)
    sender = listener.expect(r'^3,\d{10},"127\.0\.0\.1","Desk csv","LBTRM:[^"]+"((?:,\d+)+)$').group(1)
    assert (context.count(","), sender.count(",")) == (19, 13)
    source.stop_lingering()
    forward.signal(15)
    assert re.search(r"^Stat msgs received/sent ([1-9]\d*)/\1$", forward.finish(), re.M)


def test_lbmmondata_writes_titles_and_numbers(host: Host, loopback_config: Config) -> None:
    config = loopback_config("source transport lbtrm", "source resolver_advertisement_minimum_initial_interval 100")
    data = host.start("lbmmondata", "-c", config, "-t", "/mine")
    source = host.start(
        "lbmsrc", "-c", config, "-d", 0, "-M", 5, "-L", 3600, "--monitor-ctx=1", "--monitor-appid=Desk",
        f"--monitor-transport-opts=topic=/mine;config={config}", "t",
    )  # fmt: skip
    data.expect(r'^"Timestamp","Address","ApplicationID","Source","Topic resolution datagrams sent",.*')
    line = data.expect(r'^\d{10},"127\.0\.0\.1","Desk","LBTRM:[^"]+",((?:\d+,){12}\d+)$')
    assert line.group(1).count(",") == 12
    source.stop_lingering()
    data.signal(15)
    assert re.search(r"^Context stats received: [1-9]", data.finish(), re.M)


def test_lbmmoncache_keeps_the_last_record_of_each_object(host: Host, loopback_config: Config, tmp_path: Path) -> None:
    choices = tmp_path / "choices"
    os.mkfifo(choices)
    line = ["sh", "-c", f'exec "$0" "$@" < {choices}', str(BUILD / "bin" / "lbmmoncache"), "-C", "100", *UDP]
    cache = host.start_command(*line)
    with choices.open("w") as menu:
        cache.expect("^q\\) Quit")
        print("v", file=menu, flush=True)
        source = monitored(host, loopback_config("source transport tcp"), "pb", "--monitor-src=1")
        cache.expect(r"^Source: App Desk pb @ 127\.0\.0\.1 for source: TCP:127\.0\.0\.1:\d+")
        print("t", file=menu, flush=True)
        cache.expect(r"^Dumping known topics and sources\nSource: App Desk pb .*\nCurrent cache size is 1, added 1$")
        print("S\nDesk", file=menu, flush=True)
        cache.expect(r"^Dumping stats matching Desk\n\nSource statistics received from Desk pb at .*\nSource: TCP:")
        source.stop_lingering()
        print("q", file=menu, flush=True)
        cache.finish()


def test_commands_that_make_no_sense_are_refused(host: Host) -> None:
    for arguments, text in (
        (("-T", "TCP:127.0.0.1:1"), "-C with a command"),
        (("-C", "SNAP", "-T", "TCP:127.0.0.1:1", "extra"), "arguments other than options"),
        (("-C", "SNAP", "-T", "TCP:127.0.0.1:1", "-P", 0), "-P must be more than 0"),
        (("-C", "SNAP", "-T", "TCP:127.0.0.1:1", "-D", "1", "-F", "x"), "cannot be given together"),
        (("-C", "NONSENSE", "-T", "TCP:127.0.0.1:1"), "must be one of SET_INTERVAL"),
        (("-C", "SNAP", "-N", "NONSENSE", "-T", "TCP:127.0.0.1:1"), "must be one of ALL_NODES"),
    ):
        process = host.start("lbmmon_cmd", *arguments)
        assert process.wait() == 1 and text in process.output, process.output


def test_what_strangers_send_is_not_printed(host: Host) -> None:
    """Garbage, cut records and control characters; then a good one is still printed."""
    monitor = host.start("lbmmon", *UDP)
    script = """
import socket, struct, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def packet(kind, data, name=b"A\\x1b[2J"):
    block = struct.pack(">HH", 2, 0) + struct.pack(">HH", 2, len(name)) + name + struct.pack(">HHH", 3, 2, 0x0201)
    return struct.pack(">IHHHH", 0x1b33041b, kind, len(block), len(data), 0) + block + data
for n in range(200):
    for junk in (b"", b"\\x1b", bytes(range(256)), packet(n % 12, b"\\xff" * 40), packet(n % 12, b"\\x12\\x80")):
        s.sendto(junk, ("127.0.0.1", 2933))
while True:
    s.sendto(packet(5, bytes([0x1a, 8, 0x12, 6, 0x0a, 2, 0x61, 0x1b, 0x10, 1])), ("127.0.0.1", 2933))
    time.sleep(0.05)
"""
    host.start_command("python3", "-c", script)
    monitor.expect(r"^Wildcard receiver statistics received from A\?\[2J.*\n\tWildcard receiver pattern   : a\?$")
    assert "\x1b" not in monitor.output


def test_lbmmon_cmd_takes_a_sample_of_a_process(host: Host, loopback_config: Config) -> None:
    """The interval is an hour: what arrives was asked for. An unknown target is told by the status."""
    port = ("context|request_tcp_bind_request_port=1", "context|request_tcp_port=14777")
    config = loopback_config("source transport tcp", "source resolver_advertisement_minimum_initial_interval 100")
    monitor = host.start("lbmmon", "-c", config)
    options = ";".join((*port, "context|request_tcp_interface=127.0.0.1", f"config={config}"))
    flags = ("--monitor-ctx=3600", "--monitor-appid=Desk", f"--monitor-transport-opts={options}")
    source = host.start("lbmsrc", "-c", config, "-d", 0, "-M", 1, "-L", 3600, *flags, "t")
    source.expect("^Lingering")
    target = ("-T", "127.0.0.1:14777", "-L", 0)
    for _ in range(100):  # a monitor that has not joined yet hears of the next one
        command = host.start("lbmmon_cmd", "-c", config, "-C", "SAMPLE", *target)
        answer = command.finish()
        assert re.search(r"^Sending command \[SAMPLE\] to TCP:127\.0\.0\.1:14777$", answer, re.M)
        assert re.search(r"^Response received \[ok.*\] from \[.*\]\[\d+\], \d+ bytes$", answer, re.M), answer
        if "Context statistics received from Desk" in monitor.output:
            break
    monitor.expect("^Context statistics received from Desk at 127.0.0.1")
    refused = host.start("lbmmon_cmd", "-c", config, "-C", "SET_INTERVAL", "-D", "nonsense", *target).finish()
    assert re.search(r"^Response received \[error: ", refused, re.M), refused
    source.go_on()
    source.finish()


def test_lbmmon_cmd_sets_filters_of_a_process(host: Host, loopback_config: Config, tmp_path: Path) -> None:
    """Rules of a file, made of what -d prints, act on what the process sends next, until they are cleared."""
    defaults = host.start("lbmmon_cmd", "-d").finish()
    assert "filter|ump.stats.src_repo_stats.topic_name=on;" in defaults.splitlines()
    rule = "filter|ums.stats.source_transports.tcp.num_clients=on;"
    assert rule in defaults.splitlines()
    rules = tmp_path / "rules"
    rules.write_text("# clients are nobody's business\n" + defaults.replace(rule, rule.replace("=on", "=off")))

    port = ("context|request_tcp_bind_request_port=1", "context|request_tcp_port=14778")
    config = loopback_config("source transport tcp", "source resolver_advertisement_minimum_initial_interval 100")
    monitor = host.start("lbmmon", "-c", config)
    options = ";".join((*port, "context|request_tcp_interface=127.0.0.1", f"config={config}"))
    flags = ("--monitor-ctx=1", "--monitor-format=pb", f"--monitor-transport-opts={options}")
    host.start("lbmrcv", "-c", config, "t")
    host.start("lbmsrc", "-c", config, "-d", 0, "-M", 1, "-L", 3600, *flags, "t")

    def next_clients() -> int:
        """Of the next record but one: the next one may be on its way."""
        monitor.expect_times("^\tClients", len(re.findall("^\tClients", monitor.output, re.M)) + 2)
        return int(re.findall(r"^\tClients +: (\d+)$", monitor.output, re.M)[-1])

    while next_clients() == 0:  # the receiver has to find the source; the test's time is the limit
        pass

    def ask(*arguments: object) -> str:
        text = host.start("lbmmon_cmd", "-c", config, "-T", "127.0.0.1:14778", "-L", 0, *arguments).finish()
        return re.search(r"^Response received \[(.*?)\0?\] from", text, re.M)[1]  # type: ignore[index]

    assert ask("-C", "SET_FILTER_OPTIONS", "-F", rules) == "ok: 1 rules, 1 of them about records of this process"
    assert next_clients() == 0
    only_stores = ask("-C", "SET_FILTER_OPTIONS", "-D", "filter|ump.events=off")
    assert only_stores.startswith("ok: 1 rules, kept, but this process has nothing")
    assert next_clients() > 0
    assert ask("-C", "SET_FILTER_OPTIONS", "-D", "filter|ums=never").startswith("error: ums: ")
    assert ask("-C", "CLEAR_FILTER_OPTIONS").startswith("ok: 0 rules")


SOURCE = r"^Source statistics received from P at .*\nSource: TCP:"
QUEUE_RECORD = r"^Event queue statistics received from P at "
CONTEXT_RECORD = r"^Context statistics received from P at "


@pytest.mark.parametrize(
    "name, flags, pattern",
    [
        ("lbmmsrc", ("--monitor-src=1", "-M", 3, "-S", 2, "-T", 1, "-L", 3600), SOURCE),
        ("lbmstrm", ("--monitor-src=1", "-S", 2, "-M", 3, "-L", 3600), SOURCE),
        ("lbmrcv", ("--monitor-ctx=1", "t"), CONTEXT_RECORD),
        ("lbmrcvq", ("--monitor-evq=1", "t"), QUEUE_RECORD),
        ("lbmwrcv", ("--monitor-ctx=1", "^t"), CONTEXT_RECORD),
        ("lbmwrcvq", ("--monitor-evq=1", "^t"), QUEUE_RECORD),
        ("lbmmrcv", ("--monitor-ctx=1", "-R", 2), CONTEXT_RECORD),
        ("lbmmrcvq", ("--monitor-evq=1", "-R", 2), QUEUE_RECORD),
        ("lbmhfxrcv", ("--monitor-ctx=1", "t"), CONTEXT_RECORD),
    ],
)
def test_example_programs_send_records_of_their_objects(
    host: Host, loopback_config: Config, name: str, flags: tuple[object, ...], pattern: str
) -> None:
    monitor = host.start("lbmmon", *UDP)
    opts = ("--monitor-transport=udp", "--monitor-transport-opts=address=127.0.0.1", "--monitor-appid=P")
    host.start(name, "-c", loopback_config("source transport tcp"), *opts, *flags)
    monitor.expect(pattern)


def test_the_records_of_a_receiver_and_a_smart_source_are_theirs(host: Host, loopback_config: Config) -> None:
    monitor = host.start("lbmmon", *UDP)
    config = loopback_config("source transport lbtrm")
    opts = ("--monitor-transport=udp", "--monitor-transport-opts=address=127.0.0.1")
    host.start("lbmrcv", "-c", config, *opts, "--monitor-rcv=1", "--monitor-appid=R", "t")
    host.start(
        "lbmssrc", "-c", config, *opts, "--monitor-src=1", "--monitor-appid=S", "-d", 0, "-M", 9, "-L", 3600, "t"
    )
    monitor.expect(r"^Source statistics received from S at .*\nSource: LBTRM:.*\nTransport: LBT-RM$")
    monitor.expect(r"^Receiver statistics received from R at .*\nSource: LBTRM:.*\nTransport: LBT-RM$")
