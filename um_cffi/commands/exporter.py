"""`um exporter`: what the monitored processes of a fleet tell, as metrics for Prometheus and OpenTelemetry."""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import sys
from pathlib import Path
from typing import Any

from um_cffi.binding.deferred import asyncio
from um_cffi.commands import _common
from um_cffi.errors import InvalidArgument

LISTEN = "127.0.0.1:9464"


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "exporter",
        help="metrics of a fleet for Prometheus",
        description="Listen to monitoring records and serve them: /metrics for Prometheus (OpenMetrics), /health. One "
        "process for a fleet; objects that are no longer told of are removed. More: docs/python/monitoring.md.",
    )
    parser.add_argument(
        "--listen", default=LISTEN, metavar="ADDRESS:PORT", help=f"where to serve HTTP ({LISTEN}); port 0: any"
    )
    parser.add_argument("--token-file", metavar="FILE", help="ask for the token in this file (Authorization: Bearer)")
    add_record_options(parser)
    parser.add_argument("--otlp", metavar="URL", help="push to this collector too, http://HOST:4318/v1/metrics")
    parser.add_argument(
        "--otlp-interval", type=_common.seconds, default=10.0, metavar="S", help="seconds between pushes (10)"
    )
    _common.add_library_options(parser)
    parser.set_defaults(run=run)


def add_monitor_options(parser: argparse.ArgumentParser) -> Any:
    """The options that say where monitoring records come from; returns their group."""
    group = parser.add_argument_group("records")
    group.add_argument("--topic", default=None, metavar="TOPIC", help="of records (/29west/statistics)")
    group.add_argument("--pattern", metavar="PATTERN", help="of topics of records, in place of --topic")
    group.add_argument("--udp", metavar="[ADDRESS:]PORT", help="listen to datagrams instead, on loopback or ADDRESS")
    group.add_argument("--group", metavar="ADDRESS", help="with --udp: join this multicast group on ADDRESS")
    group.add_argument("--separator", default=",", metavar="C", help="of records in csv (,)")
    return group


def add_record_options(parser: argparse.ArgumentParser) -> None:
    """The options of commands that keep a model of a fleet."""
    group = add_monitor_options(parser)
    group.add_argument(
        "--expire", type=_common.seconds, default=60.0, metavar="S", help="forget objects not told of for so long (60)"
    )
    group.add_argument(
        "--max-objects", type=_common.positive, default=20_000, metavar="N", help="known at a time (20000)"
    )


@contextlib.contextmanager
def monitor_of(arguments: argparse.Namespace) -> Any:
    """The Monitor that the options of add_monitor_options() describe, and its context."""
    from um_cffi.monitoring import TOPIC, Monitor

    if arguments.group and not arguments.udp:
        raise InvalidArgument("--group: needs --udp ADDRESS:PORT, the interface to join the group on")
    if arguments.udp:
        at = arguments.udp if ":" in arguments.udp else f":{arguments.udp}"
        with Monitor(udp=at, group=arguments.group, separator=arguments.separator) as monitor:
            yield monitor
        return
    with _common.settings(arguments).context() as ctx:
        topic = arguments.topic or TOPIC
        with Monitor(ctx, topic=topic, pattern=arguments.pattern, separator=arguments.separator) as monitor:
            yield monitor


def fleet_of(arguments: argparse.Namespace, events: int = 4096) -> Any:
    """The Fleet that the options of add_record_options() describe, which keeps so many events."""
    from um_cffi.monitoring.fleet import Fleet, Limits

    most = arguments.max_objects
    each = max(1, most * 3 // 4)
    return Fleet(Limits(objects=most, objects_per_origin=each, expire_after=arguments.expire, events=events))


def endpoint(text: str) -> tuple[str, int]:
    """Address and port of ADDRESS:PORT. InvalidArgument for something else."""
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 0xFFFF:
        raise InvalidArgument(f"--listen {text}: must be ADDRESS:PORT with a port up to 65535")
    return host.strip("[]") or "127.0.0.1", int(port)


def tell_manager(state: str) -> None:
    """Tell the service manager, where one has started this process (sd_notify)."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.sendto(state.encode(), "\0" + address[1:] if address[0] == "@" else address)


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM."""
    host, port = endpoint(arguments.listen)
    token = Path(arguments.token_file).read_text().strip() if arguments.token_file else None
    if token == "":
        raise InvalidArgument(f"--token-file {arguments.token_file}: must hold a token")
    try:
        from um_cffi.monitoring._exporter import Exporter

        fleet = fleet_of(arguments, events=256)  # which nobody asks for here
        with monitor_of(arguments) as monitor:
            exporter = Exporter(monitor, fleet, token)
            pusher = None
            if arguments.otlp:
                from um_cffi.monitoring._otlp import Pusher

                pusher = Pusher(fleet, arguments.otlp)

            def ready() -> None:
                where = f"http://{exporter.server.address}/metrics"
                print(f"um exporter: serving {where}, records from {monitor.place}", file=sys.stderr, flush=True)
                tell_manager("READY=1")

            asyncio.run(exporter.run(host, port, ready, pusher, max(0.1, arguments.otlp_interval)))
    except ImportError as error:
        extra = "otlp" if "opentelemetry" in str(error) else "monitoring"
        raise InvalidArgument(f"um exporter needs more packages: pip install um-cffi[{extra}] ({error})") from None
    return 0
