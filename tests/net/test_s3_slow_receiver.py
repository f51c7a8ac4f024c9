"""Requirement S3: with the source-paced receiver mode one receiver that stops does not hold up the others.

One of four receivers is stopped with SIGSTOP while messages flow. The other three get every message in order, the
publisher never has to wait for the stopped one, and what that one missed is counted, logged, and reported to it as
loss. The publisher is never further ahead of the slowest of the three than a quarter of the session's buffer, however
late they are scheduled. The normal mode waits for the slowest by design
(test_stopped_receiver_holds_the_source_and_loses_nothing).
"""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from hosts import BUILD, Host

Config = Callable[..., str]
ROOT = Path(__file__).resolve().parents[2]
MESSAGES = 40000
PUBLISHER = """
import contextlib, dataclasses, json, signal, sys, time
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})  # before an import makes threads
from um_cffi import Context, Receiver, Source, WouldBlock, config

config.load(sys.argv[1])
messages = int(sys.argv[2])
got = [[] for _ in range(3)]
events = []
with contextlib.ExitStack() as stack:
    for mine in got:
        ctx = stack.enter_context(Context())
        Receiver(ctx, "s3", lambda message, mine=mine: mine.append(message.sequence_number), events.append)
    source = Source(stack.enter_context(Context()), "s3")
    source.wait_receivers(4, 300)
    print("begun", flush=True)
    signal.sigwait({signal.SIGUSR1})
    payload = bytes(1000)
    refused = 0
    for number in range(messages):
        while number - min(map(len, got)) >= 1000:  # 1 MB
            source.flush()
            time.sleep(0.001)
        try:
            source.send_nowait(payload)
        except WouldBlock:
            refused += 1
    source.flush()
    while min(map(len, got)) < messages:
        time.sleep(0.01)
    in_order = sum(mine == list(range(mine[0], mine[0] + messages)) for mine in got)
    lost = sum(event.type.name in ("LOSS", "BURST_LOSS") for event in events)
    told = {"refused": refused, "in_order": in_order, "lost": lost, **dataclasses.asdict(source.counts())}
    print(json.dumps(told), flush=True)
    signal.sigwait({signal.SIGUSR1})
"""


def test_s3_a_stopped_receiver_does_not_hold_up_the_others(host: Host, loopback_config: Config, tmp_path: Path) -> None:
    config = loopback_config(
        "source transport_tcp_multiple_receiver_behavior source_paced",
        "source transport_session_maximum_buffer 4000000",
        "context transport_tcp_receiver_socket_buffer 1000000",
        "source transport_tcp_sender_socket_buffer 1000000",
    )
    stopped = host.start("lbmrcv", "-c", config, "-r", 100000000, "s3")
    stopped.expect("Immediate messaging target")
    script = tmp_path / "publisher.py"
    script.write_text(PUBLISHER)
    env = {"PYTHONPATH": str(ROOT), "UM_BUILD_DIR": str(BUILD)}
    publisher = host.start_command(sys.executable, str(script), config, str(MESSAGES), env=env)
    publisher.expect("^begun", 300)
    stopped.suspend()
    publisher.signal(signal.SIGUSR1)
    told = publisher.expect(r"^\{.*\}$", 120).group()
    stopped.signal(signal.SIGCONT)
    counts = json.loads(told)
    assert (counts["refused"], counts["messages_sent"]) == (0, MESSAGES), "the publisher had to wait"
    assert (counts["in_order"], counts["lost"]) == (3, 0), told
    assert counts["session_dropped"] > 0, "the stopped receiver was to miss something: the test is too gentle"
    publisher.expect("Core-5688-3927")  # whole messages dropped for slow receivers
    stopped.expect(r"(?i)unrecoverable|lost|loss", 60)
    assert re.search("source_paced", publisher.output)
