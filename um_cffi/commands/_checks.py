"""The checks of `um doctor`. Each takes the settings and gives rows of (name, state, text, remedy)."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import ipaddress
import os
import resource
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from um_cffi import Batch, Context, Receiver, Source, UmError, config, version
from um_cffi.binding.attributes import Attributes
from um_cffi.binding.options import OPTIONS
from um_cffi.commands._common import Settings

Row = tuple[str, str, str, str]
ANY_INTERFACE = ("0.0.0.0", "0.0.0.0/0", "0.0.0.0/32")
IFF_UP, IFF_LOOPBACK, IFF_MULTICAST = 0x1, 0x8, 0x1000
SIOCGIFFLAGS, SIOCGIFADDR = 0x8913, 0x8915
FILES_MIN = 1024  # descriptors: a context takes about ten, every session and client one more
SHARED_MEMORY_MIN = 64 << 20  # bytes free
BUFFER_BAD = 131072  # bytes; with less, bursts of advertisements are lost
F_OFD_GETLK = 36
OWNER_BYTE = 1  # of a segment: locked by the owner for as long as it lives
SYSTEM_USERS = 1000  # uids below are spared by RemoveIPC
TCP_TIME_WAIT = "06"  # in /proc/net/tcp
TIME_ERROR = 5  # what adjtimex() returns while nothing synchronises the clock


@dataclass(frozen=True)
class Interface:
    """A network interface with an IPv4 address, or without one."""

    name: str
    address: str
    flags: int

    @property
    def up(self) -> bool:
        return bool(self.flags & IFF_UP)

    @property
    def loopback(self) -> bool:
        return bool(self.flags & IFF_LOOPBACK)

    @property
    def multicast(self) -> bool:
        return bool(self.flags & IFF_MULTICAST)


def interfaces() -> list[Interface]:
    """All interfaces, in the kernel's order."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for _, name in socket.if_nameindex():
            request = struct.pack("16s24x", name.encode())
            flags = struct.unpack_from("H", fcntl.ioctl(control, SIOCGIFFLAGS, request), 16)[0]
            try:
                address = socket.inet_ntoa(fcntl.ioctl(control, SIOCGIFADDR, request)[20:24])
            except OSError:
                address = ""
            found.append(Interface(name, address, flags))
    return found


def default_interface(wanted: str) -> Interface | None:
    """The interface that contexts use: the one that the option names, or the one the library chooses."""
    usable = [each for each in interfaces() if each.up and each.address]
    if wanted and wanted not in ANY_INTERFACE:
        with contextlib.suppress(ValueError):
            network = ipaddress.ip_network(wanted, strict=False)
            return next((each for each in usable if ipaddress.ip_address(each.address) in network), None)
        return next((each for each in usable if each.name == wanted.strip('"')), None)
    outer = [each for each in usable if each.multicast and not each.loopback]
    return next(iter(outer + [each for each in usable if each.loopback]), None)


def option(settings: Settings, name: str, scope: str = "context") -> str:
    """The value that an option would have, configuration files included."""
    given = settings.options[scope].get(name)
    if given is not None:
        return str(given)
    with Attributes(scope, {}) as attributes:
        return attributes.get(name)


def _wanted_interface(settings: Settings) -> str:
    wanted = (option(settings, name) for name in ("resolver_multicast_interface", "default_interface"))
    return next((each for each in wanted if each and each not in ANY_INTERFACE), "")


# ---- the checks --------------------------------------------------------------------------------------------------


def library(settings: Settings) -> list[Row]:
    """The library answers; configuration files are right, and are loaded for what is checked next."""
    rows = [("library", "ok", f"libum {version()}", "")]
    files = list(settings.config)
    for variable in ("LBM_DEFAULT_CONFIG_FILE", "LBM_XML_CONFIG_FILENAME"):
        if os.environ.get(variable):
            files.append(os.environ[variable])
    for name in files:
        problems = config.validate(name)
        if problems:
            rows.append(("configuration", "FAIL", f"{name}: {problems[0]}", "correct the line; see docs/options.md"))
        else:
            if name in settings.config:  # the library loads the others by itself
                config.load(name)
            rows.append(("configuration", "ok", name, ""))
    return rows


def network_interfaces(settings: Settings) -> list[Row]:
    """Loopback is up; the interface of contexts exists, and there is no doubt which one it is."""
    rows: list[Row] = []
    everything = interfaces()
    loopback = next((each for each in everything if each.loopback), None)
    if loopback is None or not loopback.up:
        rows.append(("loopback", "FAIL", "the loopback interface is down", "ip link set lo up"))
    else:
        rows.append(("loopback", "ok", f"{loopback.name} {loopback.address} is up", ""))
    wanted = _wanted_interface(settings)
    chosen = default_interface(wanted)
    if chosen is None:
        names = ", ".join(f"{each.name} {'up' if each.up else 'down'}" for each in everything) or "none"
        text = f"no interface is usable{' for ' + wanted if wanted else ''} (there are: {names})"
        rows.append(("interface", "FAIL", text, "ip link set DEVICE up and give it an IPv4 address"))
        return rows
    others = [e for e in everything if e.up and e.address and e.multicast and not e.loopback and e.name != chosen.name]
    text = f"contexts use {chosen.name} {chosen.address}"
    without = [
        each.name for each in everything if each.up and each.address and not each.multicast and not each.loopback
    ]
    if chosen.loopback and not wanted and without:
        text = f"{text}: this host only, because {', '.join(without)} is without multicast"
        remedy = f"ip link set {without[0]} multicast on, or option default_interface and lbmrd"
        rows.append(("interface", "FAIL", text, remedy))
    elif chosen.loopback and not wanted:
        rows.append(("interface", "warn", f"{text}: this host only", "bring a network interface up to reach others"))
    elif others and not wanted:
        names = ", ".join(f"{each.name} {each.address}" for each in others)
        rows.append(
            ("interface", "warn", f"{text}; as well possible: {names}", f"option default_interface {chosen.address}")
        )
    else:
        rows.append(("interface", "ok", text, ""))
    return rows


def multicast(settings: Settings) -> list[Row]:
    """A datagram to the resolution group comes back; with a TTL of 0 it does not leave the host."""
    daemons = option(settings, "resolver_unicast_daemon")
    group = option(settings, "resolver_multicast_address")
    chosen = default_interface(_wanted_interface(settings))
    if chosen is None:
        return [("multicast", "FAIL", "there is no interface to test", "see above")]
    remedy = (
        f"ip link set {chosen.name} multicast on; ip route add 224.0.0.0/4 dev {chosen.name}; "
        "or run lbmrd and set resolver_unicast_daemon (um doctor -d HOST:15380)"
    )
    reason = _multicast_reason(group, chosen)
    state = "FAIL" if reason and not daemons else "warn"
    if reason:
        return [("multicast", state, f"{group} on {chosen.name} {chosen.address}: {reason}", remedy)]
    return [("multicast", "ok", f"{group} works on {chosen.name} {chosen.address}", "")]


def _multicast_reason(group: str, chosen: Interface) -> str:
    """Why a datagram to the group does not come back, empty if it does."""
    if not chosen.multicast and not chosen.loopback:  # a loopback interface carries it all the same
        return "the interface has no MULTICAST flag"
    source = socket.inet_aton(chosen.address)
    receiver, sender = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    with receiver, sender:
        payload = os.urandom(16)
        try:
            receiver.bind((group, 0))
            receiver.settimeout(1)
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + source)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, source)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
            sender.sendto(payload, (group, receiver.getsockname()[1]))
            return "" if receiver.recv(64) == payload else "another datagram came back"
        except socket.timeout:
            return "a datagram sent does not come back: a firewall or a missing route"
        except OSError as error:
            return str(error)


def socket_buffers(settings: Settings) -> list[Row]:
    """The kernel grants the buffers that the options ask for."""
    return [
        _buffer_row(
            settings, "receive buffers", socket.SO_RCVBUF, "rmem_max", "resolver_multicast_receiver_socket_buffer"
        ),
        _buffer_row(settings, "send buffers", socket.SO_SNDBUF, "wmem_max", "transport_lbtrm_source_socket_buffer"),
    ]


def _buffer_row(settings: Settings, name: str, number: int, limit: str, asked_by: str) -> Row:
    wanted, explicit = int(option(settings, asked_by)), asked_by in settings.options["context"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, number, wanted)
        granted = probe.getsockopt(socket.SOL_SOCKET, number) // 2  # the kernel counts its own overhead in
    with contextlib.suppress(OSError, ValueError):
        granted = min(granted, int(Path("/proc/sys/net/core", limit).read_text()))
    if granted >= wanted:
        return (name, "ok", f"{wanted} bytes granted", "")
    state = "FAIL" if explicit or granted < BUFFER_BAD else "warn"
    remedy = f"sysctl -w net.core.{limit}={wanted} (in /etc/sysctl.d to stay)"
    text = f"{asked_by} asks for {wanted} bytes, the kernel grants {granted}: {_cost(number, granted)}"
    return (name, state, text, remedy)


def _cost(number: int, granted: int) -> str:
    """What a buffer of so many bytes means."""
    ms = granted * 8 / 1e9 * 1e3
    if number == socket.SO_RCVBUF:
        return (
            f"at 1 Gb/s a receiver that is held up for more than {ms:.2g} ms loses datagrams, which LBT-RM and LBT-RU "
            "must repair; TCP, LBT-IPC and LBT-SMX do not mind"
        )
    return f"bursts of more than {granted >> 10} KiB make senders wait for the network; nothing is lost"


def reliable_udp(settings: Settings) -> list[Row]:
    """How fast LBT-RM and LBT-RU may send, how soon they repair, and the profile that sets both."""
    if option(settings, "um_profile") == "low_latency":
        text = "low_latency: rates up to 10 Gb/s, a lost datagram is asked for after 0.1 ms"
        return [("profile", "ok", text, "")]
    rate, repairs = (int(option(settings, f"transport_lbtrm_{kind}_rate_limit")) for kind in ("data", "retransmit"))
    wait = int(option(settings, "transport_lbtrm_nak_initial_backoff_interval", "receiver"))
    again = int(option(settings, "transport_lbtrm_nak_backoff_interval", "receiver"))
    text = (
        f"none: LBT-RM sends {rate / 1e6:g} Mb/s and repairs {repairs / 1e6:g} Mb/s at most,"
        f" NAKs wait {wait} ms and {again} ms; `context um_profile low_latency` lifts that"
    )
    return [("profile", "ok", text, "")]


def limits(_: Settings) -> list[Row]:
    """Descriptors and locked memory."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    shown = "unlimited" if soft == resource.RLIM_INFINITY else str(soft)
    if soft != resource.RLIM_INFINITY and soft < FILES_MIN:
        remedy = f"ulimit -n {FILES_MIN * 64}" if hard >= FILES_MIN * 64 or hard < 0 else "raise nofile in limits.conf"
        text = f"{shown} files may be open; every session and receiver takes one: fewer than {FILES_MIN} do not last"
        return [("open files", "FAIL", text, remedy)]
    return [("open files", "ok", f"{shown} may be open", "")]


def clocks(_: Settings) -> list[Row]:
    """A clock that is cheap to read, and synchronised with other hosts."""
    rows: list[Row] = []
    with contextlib.suppress(OSError):
        name = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource").read_text().strip()
        slow = name in ("hpet", "acpi_pm", "jiffies", "refined-jiffies")
        text = f"{name}{' is slow to read: every message pays for it' if slow else ''}"
        remedy = "boot with clocksource=tsc tsc=reliable, if the processor has a stable one" if slow else ""
        rows.append(("clock source", "warn" if slow else "ok", text, remedy))
    begin = time.perf_counter()
    for _each in range(1000):
        time.clock_gettime_ns(time.CLOCK_REALTIME)
    rows.append(("clock", "ok", f"{(time.perf_counter() - begin) * 1e6:.0f} ns for a reading from Python", ""))
    synchronised = _synchronised()
    if synchronised is not None:
        text = "synchronised" if synchronised else "not synchronised: latencies between hosts mean nothing"
        remedy = "" if synchronised else "run chronyd or ptp4l"
        rows.append(("clock synchronisation", "ok" if synchronised else "warn", text, remedy))
    return rows


def _synchronised() -> bool | None:
    """What the kernel knows about it; None if it cannot be asked."""
    try:
        room = ctypes.create_string_buffer(512)  # struct timex, larger than any of its versions; modes 0 only reads
        result: int = ctypes.CDLL(None, use_errno=True).adjtimex(room)
    except (OSError, AttributeError):
        return None
    return None if result < 0 else result != TIME_ERROR


def permissions(_: Settings) -> list[Row]:
    """Shared memory may be made."""
    rows: list[Row] = []
    folder = "/dev/shm"
    if not os.access(folder, os.W_OK):
        rows.append(
            (
                "shared memory",
                "FAIL",
                f"{folder} is not writable",
                f"mount -t tmpfs tmpfs {folder}; chmod 1777 {folder}",
            )
        )
    else:
        free = shutil.disk_usage(folder).free
        text, remedy = f"{folder}: {free >> 20} MiB free", f"mount -o remount,size=1G {folder} (containers: --shm-size)"
        short = free < SHARED_MEMORY_MIN
        rows.append(("shared memory", "warn" if short else "ok", text, remedy if short else ""))
    return rows


def shared_memory(_: Settings) -> list[Row]:
    """Segments of LBT-IPC and LBT-SMX that killed processes left; who else removes them."""
    folder = Path(os.environ.get("UM_SHM_DIR", "/dev/shm"))
    living = dead = 0
    for path in [*folder.glob("LBTIPC_*"), *folder.glob("LBTSMX_*")]:
        owned = _owned(path)
        living += owned is True
        dead += owned is False
    text = f"{living} segments in use, {dead} left by processes that are gone"
    remedy = "lbtipc_resource_manager -reclaim; lbtsmx_resource_manager -reclaim" if dead else ""
    rows: list[Row] = [("segments", "warn" if dead else "ok", text, remedy)]
    if removes_ipc("/etc/systemd/logind.conf") and os.geteuid() >= SYSTEM_USERS:
        text = "systemd removes the segments of this user at logout, under running processes too"
        rows.append(("RemoveIPC", "warn", text, "RemoveIPC=no in /etc/systemd/logind.conf, or run as a system user"))
    return rows


def _owned(path: Path) -> bool | None:
    """Whether the owner of a segment lives: it holds a lock on its file. None if that cannot be told."""
    try:
        with path.open("rb") as file:
            lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, OWNER_BYTE, 1, 0)
            kind: int = struct.unpack("hhqqi4x", fcntl.fcntl(file, F_OFD_GETLK, lock))[0]
    except OSError:
        return None
    return kind != fcntl.F_UNLCK


def removes_ipc(file: str) -> bool:
    """Whether systemd-logind, whose configuration this is, removes what users leave in shared memory (its default)."""
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return False
    values = [line.partition("=")[2].strip().lower() for line in lines if line.strip().startswith("RemoveIPC=")]
    return not values or values[-1] not in ("no", "false", "0", "off")


@dataclass(frozen=True)
class _Range:
    """A range of TCP ports that every context of a host draws from."""

    name: str
    purpose: str
    low_option: str
    high_option: str
    low: int
    high: int
    explicit: bool
    """Somebody has set it: used up, it is an error."""


def _range(settings: Settings, name: str, purpose: str, prefix: str) -> _Range:
    ends = (f"{prefix}_low", f"{prefix}_high")
    low, high = (int(option(settings, end)) for end in ends)
    explicit = any(
        end in settings.options["context"] or str(port) != OPTIONS["context"][end].default
        for end, port in zip(ends, (low, high))
    )
    return _Range(name, purpose, ends[0], ends[1], low, high, explicit)


def tcp_ports(settings: Settings) -> list[Row]:
    """The two ranges of TCP ports: sessions of sources, and the request port that each context listens on."""
    rows = [_range_row(_range(settings, "TCP ports", "sessions of sources", "transport_tcp_port"))]
    port = int(option(settings, "request_tcp_port"))
    if option(settings, "request_tcp_bind_request_port") != "1":
        rows.append(("request ports", "ok", "none is wanted (request_tcp_bind_request_port 0)", ""))
    elif port != 0:
        name = "request_tcp_port"
        rows.append(_range_row(_Range("request ports", "one context only", name, name, port, port, True)))
    else:
        rows.append(_range_row(_range(settings, "request ports", "one for each context", "request_tcp_port")))
    return rows


def _range_row(ports: _Range) -> Row:
    if ports.high == 0:
        return (ports.name, "ok", f"any free port is taken, {ports.purpose}", "")
    total = ports.high - ports.low + 1
    free, refused = 0, ""
    for port in range(ports.low, ports.high + 1):
        with socket.socket() as probe:  # without SO_REUSEADDR, as the library binds by default
            try:
                probe.bind(("", port))
                free += 1
            except OSError as error:
                refused = f"{errno.errorcode.get(error.errno or 0, '')} {error.strerror}".strip()
    resting = len(time_wait() & set(range(ports.low, ports.high + 1)))
    waits = f", {resting} in TIME-WAIT for a minute after they were closed" if resting else ""
    if free:
        return (ports.name, "ok", f"{ports.low}..{ports.high}, {ports.purpose}: {free} of {total} free{waits}", "")
    text = f"none of the ports {ports.low}..{ports.high} ({ports.purpose}) is free: {refused}{waits}"
    if not ports.explicit:
        remedy = f"if a firewall must know the ports, set {ports.low_option} and {ports.high_option} wider"
        return (ports.name, "warn", f"{text}; any free port is taken instead", remedy)
    raised = "set 0 for any free port" if ports.low_option == ports.high_option else f"raise {ports.high_option}"
    return (ports.name, "FAIL", text, f"{raised}, or end what uses them (ss -antp)")


def time_wait(table: str = "/proc/net/tcp") -> set[int]:
    """The local ports of this host with connections in TIME-WAIT: nobody listens there before that is over."""
    try:
        lines = Path(table).read_text().splitlines()[1:]
    except OSError:
        return set()
    rows = (line.split() for line in lines)
    return {int(row[1].rpartition(":")[2], 16) for row in rows if len(row) > 3 and row[3] == TCP_TIME_WAIT}


def firewall(_: Settings) -> list[Row]:
    """A rule set that discards what comes in. What it discards is judged by the tests of traffic."""
    commands = (("nft", "list", "ruleset"), ("iptables", "-S"))
    for command in commands:
        if shutil.which(command[0]) is None:
            continue
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3)
        if done.returncode != 0:
            return [("firewall", "ok", f"not readable by this user ({command[0]}); see the exchange below", "")]
        lines = [line.strip() for line in done.stdout.splitlines()]
        dropping = [line for line in lines if "drop" in line or "reject" in line or "DROP" in line or "REJECT" in line]
        if dropping:
            remedy = (
                "let UDP 12965 and 15380, and the TCP ports of sessions (14371..14390) and requests (14391..14395) pass"
            )
            return [("firewall", "warn", f"{len(dropping)} rules discard packets, such as: {dropping[0][:80]}", remedy)]
        return [("firewall", "ok", "no rule discards packets", "")]
    return [("firewall", "ok", "neither nft nor iptables is installed", "")]


def exchange(settings: Settings) -> list[Row]:
    """A source and a receiver of this host find each other, and a message arrives."""
    given = {"resolver_multicast_ttl": 0, **settings.options["context"]}
    quiet = {
        name: BUFFER_BAD
        for name in OPTIONS["context"]
        if name.endswith("receiver_socket_buffer") and name.startswith("resolver")
    }
    topic = f"um.doctor/{socket.gethostname()}/{os.getpid()}"
    begin = time.monotonic()
    try:
        with Context(options={**quiet, **given}) as sending, Context(options={**quiet, **given}) as receiving:
            receiver = Receiver(receiving, topic)
            source = Source(sending, topic)
            source.wait_receivers(1, 4)
            source.send(b"examination", flush=True)
            arrived = any(bytes(each.data) == b"examination" for batch in _until(receiver, 2) for each in batch)
    except UmError as error:
        remedy = "mend what is marked above; without multicast run lbmrd and give its address with -d"
        return [("exchange", "FAIL", f"source and receiver do not meet: {error}", remedy)]
    if not arrived:
        return [
            ("exchange", "FAIL", "connected, but a message sent does not arrive", "look for a firewall between them")
        ]
    return [("exchange", "ok", f"a message arrived, {(time.monotonic() - begin) * 1e3:.0f} ms after the start", "")]


def _until(receiver: Receiver, patience: float) -> Iterator[Batch]:
    """The batches of so many seconds."""
    end = time.monotonic() + patience
    while (left := end - time.monotonic()) > 0:
        batch = receiver.recv_batch(timeout=left)
        if batch is not None:
            yield batch


CHECKS: tuple[Callable[[Settings], list[Row]], ...] = (
    library,
    network_interfaces,
    multicast,
    socket_buffers,
    reliable_udp,
    limits,
    clocks,
    permissions,
    tcp_ports,
    shared_memory,
    firewall,
    exchange,
)
