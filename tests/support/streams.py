"""stream_source and stream_sink of tests/net/programs on the hosts of a Star, and what they report."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hosts import SLOW, Host, Process
from relay import Counters, Star, support_program

SOAK = bool(os.environ.get("UM_SOAK"))
LATE = 20  # packets, after a sink has told its counts

# The options of the proofs: rate limits lifted (the defaults are 10 and 5 Mb/s), datagrams that fit the MTU, a source
# that announces its number every 100 ms (also when a minute has passed until the last receiver of a busy machine has
# all: by default a source that is idle for longer falls silent), waits half the NAK interval between repairs of one
# datagram as is recommended, and short waits after a refusal. The NAK intervals are the defaults: shorter ones than a
# busy machine takes to answer ask for everything many times over.
COMMON = """
context default_interface 10.9.7.0/24
context resolver_multicast_interface 10.9.7.0/24
context transport_{t}_data_rate_limit {rate}
context transport_{t}_retransmit_rate_limit {repair_rate}
context transport_{t}_datagram_max_size 1472
source transport {t}
source transport_topic_sequence_number_info_interval 100
source transport_topic_sequence_number_info_active_threshold 0
source transport_{t}_ignore_interval 100
receiver transport_{t}_nak_initial_backoff_interval 50
receiver transport_{t}_nak_backoff_interval 200
receiver transport_{t}_nak_suppress_interval 200
"""


class Setting:
    """Writes configuration files for one transport ("lbtrm" or "lbtru")."""

    def __init__(self, folder: Path, transport: str, rate: int = 1_000_000_000, repair_rate: int = 100_000_000) -> None:
        self.transport = transport
        self.lead = "rm" if transport == "lbtrm" else "ru"
        self._folder = folder
        self._base = COMMON.format(t=transport, rate=rate, repair_rate=repair_rate)
        self._count = 0

    def write(self, *lines: str) -> str:
        """A file with more lines, which win; `{t}` in them stands for the transport."""
        self._count += 1
        path = self._folder / f"{self.transport}{self._count}.cfg"
        path.write_text(self._base + "\n".join(line.format(t=self.transport) for line in lines) + "\n")
        return str(path)


def json_after(process: Process, word: str, seconds: float) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(process.expect(rf"^{word} (\{{.*\}})$", seconds).group(1))
    return result


class Source:
    def __init__(self, host: Host, config: str, *arguments: object) -> None:
        line = [support_program("stream_source"), "-c", config, "-g", *map(str, arguments)]
        self.process = host.start_command(*line)
        self.process.expect("^created")

    def go(self) -> None:
        self.process.signal(signal.SIGUSR1)

    def sent(self, seconds: float = 120) -> dict[str, Any]:
        return json_after(self.process, "sent", seconds)

    def finish(self, seconds: float = 60) -> dict[str, Any]:
        self.process.signal(signal.SIGTERM)
        result = json_after(self.process, "final", seconds)
        self.process.finish(seconds)
        return result


class Sink:
    def __init__(self, host: Host, config: str, *arguments: object) -> None:
        self.process = host.start_command(support_program("stream_sink"), "-c", config, *map(str, arguments))
        self.process.expect("^created")

    def ready(self, seconds: float = 60) -> None:
        self.process.expect("^begin ", seconds)

    def finish(self, seconds: float = 120) -> Report:
        """Wait until everything is accounted for."""
        self.process.finish(seconds)
        return Report(json_after(self.process, "final", 1))

    def stop(self) -> Report:
        self.process.signal(signal.SIGTERM)
        return self.finish(30)

    def progress(self) -> list[tuple[float, int, int]]:
        """Time, delivered, lost, at each step of -i."""
        lines = [line.split() for line in self.process.output.splitlines() if line.startswith("progress ")]
        return [(float(line[1]), int(line[2]), int(line[3])) for line in lines if len(line) == 5]

    def wait_until(self, condition: Callable[[int, int, int], bool], seconds: float = 60) -> None:
        """Wait, with -i, for a state: delivered, lost, and the number that is awaited of whoever spoke last."""
        end = time.monotonic() + seconds * SLOW
        while True:
            words = [line.split() for line in self.process.output.splitlines() if line.startswith("progress ")]
            states = [(int(line[2]), int(line[3]), int(line[4])) for line in words if len(line) == 5]
            if states and condition(*states[-1]):
                return
            assert time.monotonic() < end, self.process.output[-2000:]
            time.sleep(0.05)

    def wait_for_more(self, messages: int) -> None:
        """Wait, with -i, until so many more have been delivered."""
        steps = self.progress()
        wanted = (steps[-1][1] if steps else 0) + messages
        self.wait_until(lambda delivered, lost, awaited: delivered >= wanted)


class Report:
    """What a sink says at its end."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    def total(self, what: str) -> int:
        return sum(int(source[what]) for source in self.data["sources"])

    def transport(self, what: str) -> int:
        return sum(int(session[what]) for session in self.data["transport"])

    @property
    def missing(self) -> list[tuple[int, int]]:
        return [(first, last) for source in self.data["sources"] for first, last in source["missing"]]

    def assert_exact(self) -> None:
        """Every message was delivered or reported once, in order, untouched."""
        for what in ("unreported", "misreported", "repeated", "disorder", "mixed", "corrupt"):
            assert self.total(what) == 0, f"{what}: {self.story()}"

    def assert_complete(self, messages: int) -> None:
        self.assert_exact()
        assert self.total("delivered") == messages, self.story()
        assert self.total("lost_single") + self.total("bursts") == 0, self.story()

    def story(self) -> str:
        """All it says, but of many missing stretches the first and last: a failure is to be read."""

        def short(source: dict[str, Any]) -> dict[str, Any]:
            missing = source["missing"]
            return {**source, "missing": [*missing[:10], f"... {len(missing)} in all ...", *missing[-10:]]}

        many = [short(source) if len(source["missing"]) > 20 else source for source in self.data["sources"]]
        return str({**self.data, "sources": many})


def backlog_drops() -> int:
    """Frames the kernel has dropped because a core's queue of incoming frames was full; of the whole machine."""
    lines = Path("/proc/net/softnet_stat").read_text().splitlines()
    return sum(int(line.split()[1], 16) for line in lines)


class Stream:
    """A source on host 0 that has been found by a sink on each other host, and waits for go()."""

    def __init__(
        self, star: Star, config: str, messages: int | None, *arguments: object, sink: Sequence[object] = ()
    ) -> None:
        """Without a number of messages the source sends until it is ended, the sinks until they are."""
        self.star = star
        count = () if messages is None else ("-n", messages)
        self.sinks = [Sink(host, config, *count, *sink) for host in star.hosts[1:]]
        self.source = Source(star.hosts[0], config, "-n", messages or 1 << 60, *arguments)
        for one in self.sinks:
            one.ready(60 * SLOW)

    def go(self) -> None:
        self._drops_before = backlog_drops()
        self.source.go()

    def _result(self, sent: dict[str, Any], reports: list[Report]) -> Result:
        source = self.source.finish()
        drops = backlog_drops() - self._drops_before + self.star.socket_drops()
        return Result(sent, reports, source, self.star.counters(), drops)

    def finish(self, seconds: float = 120, lead: str = "") -> Result:
        """Wait until all is sent, every sink has accounted for everything and, with the lead of a transport ("rm" or
        "ru"), none of its NAKs and repairs is under way any more, then end the source."""
        sent = self.source.sent(seconds)
        reports = [sink.finish(seconds) for sink in self.sinks]
        if lead == "rm":
            self.star.wait_for_rest(r"rm\.(rx|nak)", r"rm\.data")  # announcements of the last number
        elif lead:
            self.source.process.expect_times("^disconnect ", len(self.sinks))  # those who left are sent nothing more
            self.star.wait_for_rest(r"ru\.(rx|nak)")
        return self._result(sent, reports)

    def stop(self) -> Result:
        """End the sending, wait until the sinks, which tell their progress (-i), have accounted for everything, and
        end them."""
        self.source.process.signal(signal.SIGUSR2)
        sent = self.source.sent(60)
        for sink in self.sinks:
            sink.wait_until(lambda delivered, lost, awaited: awaited >= sent["sent"])
        reports = [sink.stop() for sink in self.sinks]
        return self._result(sent, reports)


class Result:
    def __init__(
        self,
        sent: dict[str, Any],
        reports: list[Report],
        source: dict[str, Any],
        counters: Counters,
        kernel_drops: int,
    ) -> None:
        self.sent = sent
        self.reports = reports
        self.source = source
        self.counters = counters
        self.kernel_drops = kernel_drops
        """By the hosts' kernels; see dropped_unseen()."""

    def dropped_unseen(self) -> int:
        """Datagrams that kernels have dropped on a busy machine, at the hosts or at the relay."""
        return self.kernel_drops + self.counters.troubles()

    def story(self, lead: str) -> str:
        """The counters of the run in a line."""
        naks = sum(sink.transport("naks_sent") for sink in self.reports)
        given_up = sum(sink.transport("unrecovered_txw") + sink.transport("unrecovered_tmo") for sink in self.reports)
        datagrams = self.counters.flow("seen", rf"{lead}\.data", 0, 1)
        lost = self.counters.flow("lost", rf"{lead}\.(data|rx)", 0)
        return (
            f"{datagrams} datagrams, {lost} copies lost on the way, {naks} NAKs, "
            f"{self.source['rxs_sent']} retransmissions, {given_up} unrecovered, "
            f"{self.sent['seconds']:.1f} s"
        )
