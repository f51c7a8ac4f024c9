"""`um web`: a page for a fleet, made of the monitoring records of its processes.

Who is connected to whom, who loses or delays messages, since when; the last hour of everything. It receives records
and changes nothing. Needs the extra `web` of the wheel.
"""

from __future__ import annotations

import argparse
import os
import string
import sys
from pathlib import Path
from typing import Any

from um_cffi.commands import _common
from um_cffi.commands.exporter import add_record_options, endpoint, fleet_of, monitor_of, tell_manager
from um_cffi.errors import InvalidArgument

LISTEN = "127.0.0.1:8060"
TOKEN = frozenset(string.ascii_letters + string.digits + "-_.~")


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "web",
        help="page for a fleet",
        description="Serve a page of monitoring records: who is connected to whom, who loses or delays, since when. "
        "One process for a fleet; it only reads. More: docs/python/web.md.",
    )
    parser.add_argument("--listen", default=LISTEN, metavar="ADDRESS:PORT", help=f"where ({LISTEN}); port 0: any")
    parser.add_argument("--title", default="Ultra Messaging", metavar="TEXT", help="of the page")
    parser.add_argument(
        "--token-file", metavar="FILE", help="ask browsers for the token in this file, or in UM_WEB_TOKEN"
    )
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="what a proxy or a browser calls this host"
    )
    parser.add_argument(
        "--clients", type=_common.positive, default=64, metavar="N", help="browsers kept up to date at a time (64)"
    )
    parser.add_argument(
        "--history", type=_common.count, default=10_000, metavar="N", help="objects whose last hour is kept (10000)"
    )
    add_record_options(parser)
    _common.add_library_options(parser)
    parser.set_defaults(run=run)


def token_of(path: str | None) -> str:
    """The token of the file, or of the environment; "" where none is asked for. InvalidArgument if it is too short."""
    token, where = os.environ.get("UM_WEB_TOKEN", ""), "UM_WEB_TOKEN"
    if path is not None:
        token, where = Path(path).read_text().strip(), f"--token-file {path}"
    elif not token:
        return ""
    if len(token) < 16 or not TOKEN.issuperset(token):
        raise InvalidArgument(f"{where}: must be 16 or more letters, digits, or any of - _ . ~")
    return token


def run(arguments: argparse.Namespace) -> int:
    """Serve the page until SIGINT or SIGTERM."""
    host, port = endpoint(arguments.listen)
    try:
        from um_cffi.web import Settings
        from um_cffi.web._server import inherited
        from um_cffi.web._server import run as serve
    except ImportError as error:
        raise SystemExit(f"um web: needs the extra `web` of the wheel: uvicorn and starlette ({error})") from None
    door = inherited()
    if door is not None:
        host, port = door.getsockname()[:2]
    settings = Settings(
        host=host,
        port=port,
        token=token_of(arguments.token_file),
        names=tuple(arguments.allow_host),
        title=arguments.title,
        streams=arguments.clients,
        connections=4 * arguments.clients,
        history_objects=arguments.history,
    )

    def begun(address: str) -> None:
        print(f"um web: {address} (records from {monitor.place})", file=sys.stderr, flush=True)
        if not settings.loopback and not settings.token:
            print("um web: whoever reaches this address can read the page: see --token-file", file=sys.stderr)
        tell_manager("READY=1")

    with monitor_of(arguments) as monitor:
        serve(settings, monitor, fleet_of(arguments), begun, door)
    return 0
