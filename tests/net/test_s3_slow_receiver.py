"""Requirement S3: with the source-paced receiver mode one receiver that stops does not hold up the others.

One of four receivers is stopped with SIGSTOP for five seconds while messages flow. The other three get every message in
order, the publisher never has to wait, and what the stopped one missed is counted, logged, and reported to it as loss.
The normal mode waits for the slowest by design (test_stopped_receiver_holds_the_source_and_loses_nothing).
"""

from __future__ import annotations

import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from hosts import BUILD, Host

Config = Callable[..., str]
ROOT = Path(__file__).resolve().parents[2]
SECONDS_STOPPED = 5
MESSAGES = 40000
PUBLISHER = """
import dataclasses, json, sys, time
from um_cffi import Context, Source, WouldBlock, config

config.load(sys.argv[1])
messages = int(sys.argv[2])
with Context() as ctx:
    source = Source(ctx, "s3")
    source.wait_receivers(4, 60)
    print("begun", flush=True)
    payload = bytes(1000)
    refused = 0
    begin = time.monotonic()
    for number in range(messages):
        try:
            source.send_nowait(payload)
        except WouldBlock:
            refused += 1
        if number % 50 == 49:  # a steady rate: 5 MB/s
            time.sleep(max(0.0, begin + number / 5000 - time.monotonic()))
    source.flush()
    print(json.dumps({"refused": refused, **dataclasses.asdict(source.counts())}), flush=True)
    sys.stdin.readline()
    time.sleep(3)
"""


def test_s3_a_stopped_receiver_does_not_hold_up_the_others(host: Host, loopback_config: Config, tmp_path: Path) -> None:
    config = loopback_config(
        "source transport_tcp_multiple_receiver_behavior source_paced",
        "source transport_session_maximum_buffer 4000000",  # what a healthy receiver may lag on a busy machine
        "context transport_tcp_receiver_socket_buffer 1000000",
        "source transport_tcp_sender_socket_buffer 1000000",
    )
    receivers = [host.start("lbmrcv", "-c", config, "-r", MESSAGES, "-O", "s3") for _ in range(3)]
    stopped = host.start("lbmrcv", "-c", config, "-r", 100000000, "s3")
    for receiver in [*receivers, stopped]:
        receiver.expect("Immediate messaging target")
    script = tmp_path / "publisher.py"
    script.write_text(PUBLISHER)
    env = {"PYTHONPATH": str(ROOT), "UM_BUILD_DIR": str(BUILD)}
    publisher = host.start_command(sys.executable, str(script), config, str(MESSAGES), env=env)
    publisher.expect("^begun")
    stopped.signal(signal.SIGSTOP)
    time.sleep(SECONDS_STOPPED)
    stopped.signal(signal.SIGCONT)
    counts = publisher.expect(r'^\{"refused": (\d+), "messages_sent": (\d+).*"session_dropped": (\d+)', 120)
    assert (int(counts.group(1)), int(counts.group(2))) == (0, MESSAGES), "the publisher had to wait"
    for receiver in receivers:
        got = receiver.finish(120)
        assert f"Quitting.... received {MESSAGES} messages\n" in got
        assert "misordered" not in got
        assert "UNRECOVERABLE" not in got
    assert int(counts.group(3)) > 0, "the stopped receiver was to miss something: the test is too gentle"
    publisher.expect("Core-5688-3927")  # whole messages dropped for slow receivers
    stopped.expect(r"(?i)unrecoverable|lost|loss", 60)
    assert re.search("source_paced", publisher.output)
