"""What goes wrong at start-up gives a clear error and a clean end: no crash, no hang."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hosts import Host, Process

Config = Callable[..., str]
BEGIN = "Beginning of Transport Session"
WAITS = ("-d", 3600, "-L", 3600)  # until it is told to go on


@pytest.fixture
def no_network() -> Iterator[Host]:
    """A host with a loopback interface and no route for multicast."""
    one = Host()
    try:
        yield one
    finally:
        one.close()


def fails(process: Process, *parts: str) -> str:
    status = process.wait()
    assert status == 1, f"ended with {status}:\n{process.output}"
    for part in parts:
        assert part in process.output, process.output
    return process.output


def test_missing_configuration_file(host: Host) -> None:
    fails(host.start("lbmsrc", "-c", "/nowhere/um.cfg", "t"), "lbm_config: ", "/nowhere/um.cfg")


def test_unknown_option_names_file_line_and_option(host: Host, loopback_config: Config) -> None:
    config = loopback_config("context no_such_option 1")
    fails(host.start("lbmsrc", "-c", config, "t"), "lbm_config: ", Path(config).name, "no_such_option", "3")


def test_bad_value_names_option_and_value(host: Host, loopback_config: Config) -> None:
    config = loopback_config("context resolver_datagram_max_size many")
    fails(host.start("lbmsrc", "-c", config, "t"), "lbm_config: ", "resolver_datagram_max_size", "many")


def test_bad_xml(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "broken.xml"
    path.write_text('<?xml version="1.0"?><um-configuration version="1.0"><templates>')
    fails(host.start("lbmsrc", "-c", str(path), "t"), "lbm_config: ", "broken.xml")


def test_request_port_in_use(host: Host, loopback_config: Config) -> None:
    config = loopback_config("context request_tcp_port 14500")
    first = host.start("lbmrcv", "-c", config, "t")
    first.expect("Immediate messaging target: TCP:.*:14500")
    fails(host.start("lbmrcv", "-c", config, "t"), "lbm_context_create: ", "14500")


def test_source_port_range_exhausted(host: Host, loopback_config: Config) -> None:
    config = loopback_config("context transport_tcp_port_low 15000", "context transport_tcp_port_high 15000")
    first = host.start("lbmsrc", "-c", config, "-d", 60, "t")
    first.expect("Will start sending")
    fails(host.start("lbmsrc", "-c", config, "-d", 60, "t"), "lbm_src_create: ", "transport_tcp_port", "15000")


def test_lbmrd_port_in_use(host: Host) -> None:
    host.start("lbmrd", "-i", "127.0.0.1").expect("lbmrd started on 127.0.0.1:15380")
    fails(host.start("lbmrd", "-i", "127.0.0.1"), "15380", "Address already in use")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("-i", "10.77.0.0/16"), "Lbmrd-10729-1: Invalid interface [10.77.0.0/16] specified"),
        (("--port=70000",), "--port 70000: must be a number from 1 to 65535"),
        (("--nonsense",), "Usage: "),
        (("-v",), "name the configuration file"),
        (("-v", "/nowhere/x.xml"), "/nowhere/x.xml: cannot be opened"),
        (("/nowhere/lbmrd.xml",), "/nowhere/lbmrd.xml: cannot be opened"),
        (("-L", "/nowhere/lbmrd.log", "-i", "127.0.0.1"), "cannot open log file /nowhere/lbmrd.log"),
    ],
)
def test_lbmrd_refuses(host: Host, arguments: tuple[str, ...], part: str) -> None:
    fails(host.start("lbmrd", *arguments), part)


def test_lbmrd_ends_well_on_sigterm(host: Host, tmp_path: Path) -> None:
    log = tmp_path / "lbmrd.log"
    daemon = host.start("lbmrd", "-i", "127.0.0.1", "-L", str(log), "-p", "16000", "-t", "2", "-a", "500")
    while not log.exists() or "lbmrd started on 127.0.0.1:16000" not in log.read_text():
        assert daemon.popen.poll() is None, daemon.output
    daemon.signal(15)
    assert daemon.wait() == 0
    assert "Using interface [127.0.0.1]" in log.read_text()


def test_f28_no_multicast_route_is_survived_on_a_named_interface(no_network: Host, loopback_config: Config) -> None:
    """The interface is named, so that packets to groups need no route: all works, without a complaint."""
    config = loopback_config()
    receiver = no_network.start("lbmrcv", "-c", config, "-r", 1, "t")
    receiver.expect("Immediate messaging target")
    source = no_network.start("lbmsrc", "-c", config, *WAITS, "-M", 1, "t")
    receiver.expect(BEGIN)
    source.go_on()
    assert "Quitting.... received 1 messages" in receiver.finish()
    assert "resolver_multicast_interface" not in source.stop_lingering()


def test_f28_no_interface_for_multicast_is_reported_and_survived(no_network: Host) -> None:
    """No interface is named and only loopback is there: it is taken, with one warning that names the option."""
    receiver = no_network.start("lbmrcv", "-r", 1, "t")
    receiver.expect("Immediate messaging target")
    source = no_network.start("lbmsrc", *WAITS, "-M", 1, "t")
    receiver.expect(BEGIN)
    source.go_on()
    assert "Quitting.... received 1 messages" in receiver.finish()
    warnings = re.findall(r"^.*Core-5688-4107: .*; set (\w+) to choose$", source.stop_lingering(), re.MULTILINE)
    assert warnings == ["resolver_multicast_interface"], source.output


def test_unreachable_lbmrd_is_survived(host: Host, loopback_config: Config) -> None:
    config = loopback_config("context resolver_unicast_daemon 192.0.2.1:15380")
    source = host.start("lbmsrc", "-c", config, "-M", 10, "-d", 1, "-L", 0, "t")
    source.finish()


def test_f28_descriptor_exhaustion_is_an_error(host: Host, loopback_config: Config) -> None:
    """Every limit below what the program needs ends it with an error that names the cause; from there on it succeeds.
    Below 4 the system cannot load the library."""
    config, failures, limit = loopback_config(), 0, 4
    while limit < 64:
        process = host.start("lbmsrc", "-c", config, "-M", 1, "-d", 0, "-L", 0, "t", prefix=f"ulimit -n {limit};")
        if process.wait() == 0:
            break
        assert process.popen.returncode == 1, f"{limit}: ended with {process.popen.returncode}:\n{process.output}"
        assert re.search(r"^lbm_\w+: .*: Too many open files$", process.output, re.MULTILINE), process.output
        failures += 1
        limit += 1
    assert limit < 64, "no limit is enough"
    assert failures >= 4, "a context and a source need at least so many descriptors more"
    for more in (limit + 1, limit + 2):
        host.start("lbmsrc", "-c", config, "-M", 1, "-d", 0, "-L", 0, "t", prefix=f"ulimit -n {more};").finish()


def test_many_receivers_on_few_descriptors_keep_the_source_alive(host: Host, loopback_config: Config) -> None:
    """Connections beyond the source's limit of descriptors wait; the ones that exist go on."""
    config = loopback_config("context request_tcp_port_high 14490", "context request_tcp_bind_request_port 1")
    source = host.start("lbmsrc", "-c", config, "-M", 400, "-P", 20, "-d", 1, "-L", 0, "t", prefix="ulimit -n 14;")
    first = host.start("lbmrcv", "-c", config, "-E", "t")
    first.expect("Beginning of Transport Session")
    for _ in range(6):
        host.start("lbmrcv", "-c", config, "-E", "t").expect("Immediate messaging target")
    assert source.wait(120) == 0, source.output
    first.expect("End of Transport Session")
