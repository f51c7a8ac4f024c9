"""What watching a fleet costs: `um exporter` in a process of its own, records of 1,000 contexts by loopback datagrams.

Usage: python benchmarks/bench_monitoring.py [--seconds S] [--hours H] [--runs N] [--json]

Each second there are records of 1,000 contexts with 10,000 objects, in equal steps of 20 ms. `lag` is from a record's
sending to the end of a scrape that has it, the second for which a text is served again included. Then somebody sends
100,000 forged records a second beside them. `churn` is an hour of objects that come and go, in virtual time in this
process: decoder, model and text.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from um_cffi.monitoring import (  # noqa: E402
    Attributes,
    ContextRecord,
    Decoder,
    EventQueueRecord,
    ReceiverRecord,
    SourceRecord,
    encode,
)
from um_cffi.monitoring._fields import CONTEXT, EVENT_QUEUE, RECEIVERS, SOURCES  # noqa: E402
from um_cffi.monitoring._text import FleetText  # noqa: E402
from um_cffi.monitoring.fleet import Fleet, Limits  # noqa: E402

CONTEXTS = 1000
STEPS = 50
MARK = "the clock of the sender"


def packets_of(number: int, second: int) -> Iterator[bytes]:
    """The records of one context: itself, an event queue, three sources and five receivers."""
    who = Attributes(f"10.0.{number // 250}.{number % 250}", 0, f"app{number % 20}", number, 5000 + number, False)
    who = Attributes(**{**who.__dict__, "context_instance": f"{number:016x}"})

    def values(names: tuple[str, ...]) -> dict[str, int]:
        return {name: (second + 1) * 1000 + at for at, name in enumerate(names)}

    yield encode(ContextRecord(who, values(CONTEXT.csv)))
    yield encode(EventQueueRecord(who, values(EVENT_QUEUE.csv)))
    for each, transport in enumerate(("lbtrm", "lbtrm", "tcp")):
        source = f"LBTRM:10.1.{each}.5:14400:{number:08x}:239.101.3.1:14400"
        yield encode(SourceRecord(who, transport, source, values(SOURCES[transport].csv)))
    for each, transport in enumerate(("lbtrm", "lbtrm", "lbtrm", "tcp", "lbtipc")):
        source = f"LBTRM:10.2.{each}.5:14400:{number:08x}:239.101.3.1:14400"
        yield encode(ReceiverRecord(who, transport, source, values(RECEIVERS[transport].csv)))


def send(port: int, seconds: float) -> None:
    """Records of the whole fleet each second, and a mark with the time."""
    rounds = [[list(packets_of(number, second)) for number in range(CONTEXTS)] for second in range(4)]
    clock = Attributes(application=MARK, process_id=1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.connect(("127.0.0.1", port))
        begin, each = time.monotonic(), CONTEXTS // STEPS
        print("sending", flush=True)
        for step in range(int(seconds * STEPS)):
            time.sleep(max(0.0, begin + step / STEPS - time.monotonic()))
            at = step % STEPS * each
            for packets in rounds[step // STEPS % len(rounds)][at : at + each]:
                for packet in packets:
                    out.send(packet)
            out.send(encode(ContextRecord(clock, {"tr_dgrams_sent": int(time.monotonic() * 1000)})))


def flood(port: int, seconds: float, rate: float) -> None:
    """Forged records, of objects that do not exist and of no shape at all; prints how many were sent."""
    forged = [
        encode(
            ContextRecord(Attributes(f"10.9.9.{number % 200}", 0, f"x{number}", number, number), {"send_blocked": 1})
        )
        for number in range(20_000)
    ]
    junk = [os.urandom(60) for _ in range(1000)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.bind(("127.0.0.2", 0))  # another host than the fleet's
        out.connect(("127.0.0.1", port))
        begin, sent = time.monotonic(), 0
        while (now := time.monotonic()) < begin + seconds:
            if sent > (now - begin) * rate:
                time.sleep(0.001)
                continue
            for _ in range(50):
                out.send(junk[sent % 1000] if sent % 2 else forged[sent // 2 % 20_000])
                sent += 1
    print(sent, time.monotonic() - begin, flush=True)


class Exporter:
    """`um exporter` and what it tells."""

    def __init__(self) -> None:
        words = [sys.executable, "-m", "um_cffi", "exporter", "--udp", ":0", "--listen", "127.0.0.1:0"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment)
        assert self.process.stderr is not None
        found = re.search(r"http://([\d.]+):(\d+)/metrics.* at [\d.]+:(\d+)", self.process.stderr.readline())
        assert found is not None
        self.http, self.port = (found[1], int(found[2])), int(found[3])

    def scrape(self) -> tuple[float, float, bytes]:
        """Seconds of a scrape from connecting to the last byte, the time at its end, and its body."""
        begin = time.monotonic()
        connection = http.client.HTTPConnection(*self.http, timeout=60)
        connection.request("GET", "/metrics", headers={"Accept": "application/openmetrics-text"})
        body = connection.getresponse().read()
        end = time.monotonic()
        connection.close()
        return end - begin, end, body

    def resident(self) -> float:
        """MiB."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.partition("VmRSS:")[2].split()[0]) / 1024

    def cores_since(self, before: tuple[float, float]) -> float:
        used, at = self.used()
        return (used - before[0]) / (at - before[1])

    def used(self) -> tuple[float, float]:
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK"), time.monotonic()


def number(body: bytes, name: str) -> float:
    """The sum of a metric's samples."""
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$".encode(), body, re.M))


def lag_of(body: bytes, at: float) -> float:
    found = re.search(rf'um_context_resolver_sent_datagrams_total{{application="{MARK}".*}} (\d+)'.encode(), body)
    return at - int(found[1]) / 1000 if found else 999.0


def helper(*words: object) -> subprocess.Popen[str]:
    """This program in another process."""
    return subprocess.Popen([sys.executable, __file__, *map(str, words)], stdout=subprocess.PIPE, text=True)


def measure(seconds: float) -> dict[str, float]:
    exporter = Exporter()
    helpers = [helper("--send", exporter.port, "--seconds", 4 * seconds + 10)]
    try:
        assert helpers[0].stdout is not None
        helpers[0].stdout.readline()
        while number(exporter.scrape()[2], "um_exporter_objects") < 10 * CONTEXTS:
            time.sleep(1.5)
        before = exporter.used()
        calm = [exporter.scrape() for _ in _paced(seconds)]
        cores, resident = exporter.cores_since(before), exporter.resident()
        dropped = number(calm[-1][2], "um_exporter_dropped_packets_total")
        helpers.append(helper("--flood", exporter.port, "--seconds", seconds))
        stormy = [exporter.scrape() for _ in _paced(seconds)]
        assert helpers[1].stdout is not None
        sent, took = map(float, helpers[1].stdout.readline().split())
        return {
            "objects": number(calm[-1][2], "um_exporter_objects"),
            "megabytes": len(calm[-1][2]) / 1e6,
            "scrape_ms": statistics.median(each[0] for each in calm) * 1e3,
            "scrape_max_ms": max(each[0] for each in calm) * 1e3,
            "lag": max(lag_of(body, at) for _, at, body in calm),
            "dropped": dropped,
            "cores": cores,
            "flood_rate": sent / took,
            "flood_scrape_ms": statistics.median(each[0] for each in stormy) * 1e3,
            "flood_lag": max(lag_of(body, at) for _, at, body in stormy),
            "flood_growth": exporter.resident() - resident,
            "flood_left_out": sum(
                number(stormy[-1][2], f"um_exporter_{name}_packets_total")
                for name in ("refused", "dropped", "malformed")
            )
            - dropped,
        }
    finally:
        for each in (*helpers, exporter.process):
            each.kill()
            each.wait()


def _paced(seconds: float) -> Iterator[int]:
    """A turn each two seconds, as regularly as Prometheus comes."""
    begin = time.monotonic()
    for turn in range(max(3, int(seconds / 2))):
        time.sleep(max(0.0, begin + 2.0 * turn - time.monotonic()))
        yield turn


def churn(hours: float) -> dict[str, float]:
    """Resident MiB that are added after the first two tenths of so many virtual hours, 300 contexts at a time, a minute
    each: medians of the tenths, since a single look may fall into the making of a text."""
    fleet, decoder = Fleet(Limits(expire_after=10.0, events=256)), Decoder()
    text = FleetText(fleet)
    seconds = int(hours * 3600)
    tenths: list[list[float]] = [[] for _ in range(10)]
    for second in range(seconds):
        for context in range(second * 5, second * 5 + 300, 20):
            for packet in packets_of(context, second):
                for record in decoder.decode(packet):
                    fleet.add(record, float(second), "10.0.0.1")
        fleet.expire(float(second))
        if second % 15 == 0:
            text.render(float(second))
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            tenths[second * 10 // seconds].append(pages * os.sysconf("SC_PAGE_SIZE") / 2**20)
    _, settled, *later = (statistics.median(tenth) for tenth in tenths)
    return {"churn_growth": max(later) - settled, "churn_objects": fleet.counts.objects_created}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--send", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--flood", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.send:
        send(options.send, options.seconds)
        return
    if options.flood:
        flood(options.flood, options.seconds, 100_000)
        return
    runs = [measure(options.seconds) for _ in range(options.runs)]
    figures = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    figures.update(churn(options.hours))
    if options.json:
        print(json.dumps({"figures": figures, "cores_of_machine": os.cpu_count()}))
    else:
        for name, value in figures.items():
            print(f"{name:>20} {value:,.2f}")


if __name__ == "__main__":
    main()
