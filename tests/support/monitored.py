"""A process that sends or receives, and is monitored automatically once a second.

python tests/support/monitored.py send|receive NAME TOPIC INTERFACE TRANSPORT
"""

from __future__ import annotations

import sys
import time
from typing import Any

from um_cffi import Context, Receiver, Source

RATE = 2_000  # messages a second


def main() -> None:
    """Until somebody ends it."""
    role, name, topic, interface, transport = sys.argv[1:]
    network: dict[str, Any] = {"default_interface": interface}
    network.update({f"resolver_{kind}_receiver_socket_buffer": 131072 for kind in ("multicast", "unicast")})
    options: dict[str, Any] = {
        **network,
        "transport_lbtrm_data_rate_limit": 100_000_000,
        "monitor_interval": 1,
        "monitor_appid": name,
        "monitor_transport_opts": ";".join(f"context|{option}={value}" for option, value in network.items()),
    }
    with Context(options=options) as ctx:
        source = Source(ctx, topic, options={"transport": transport}) if role == "send" else None
        _receiver = Receiver(ctx, topic, lambda message: None, monitor_interval=1) if role == "receive" else None
        print("ready", flush=True)
        begin, sent = time.monotonic(), 0
        while True:
            while source and sent < (time.monotonic() - begin) * RATE:
                source.send(b"x" * 100)
                sent += 1
            time.sleep(0.005)


if __name__ == "__main__":
    main()
