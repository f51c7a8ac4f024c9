"""Options three ways, configuration files, and topic resolution: what is set, what is wrong, and asking again."""

from __future__ import annotations

import tempfile
from pathlib import Path

from um_cffi import Context, InvalidArgument, Source, config

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "um.cfg"
    path.write_text("context resolver_multicast_ttl 0\nsource implicit_batching_intervall 100\n")
    for problem in config.validate(path):
        print(f"{path.name}, {problem}")
    path.write_text("source implicit_batching_interval 100\n")
    config.load(path)  # defaults of everything made from now on

options = {"resolver_multicast_ttl": 0}
with Context(options) as ctx, Source(ctx, "Optional", transport_tcp_nodelay=True) as source:
    for name in ("implicit_batching_interval", "transport_tcp_nodelay", "transport"):
        print(f"source {name}: {source.getopt(name)}")
    print(f"context resolver_multicast_ttl: {ctx.getopt('resolver_multicast_ttl')}")
    try:
        Source(ctx, "Wrong", options={"transport": "tpc"})
    except InvalidArgument as error:
        print(error)
    before = ctx.stats().tr_dgrams_sent
    ctx.request_resolution(advertisements=True, queries=True, duration=0)  # as lbmtrreq -a -q does
    print("asked:", ctx.stats().tr_dgrams_sent >= before)
