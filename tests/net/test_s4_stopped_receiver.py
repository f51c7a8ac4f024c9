"""Requirement S4: one receiver of five is stopped; the page, `um top` and an alert name it, with host, process, topic.

With the documented settings (records and scrapes once a second) that takes five seconds at most on a machine that has
the time; how long it took is printed, not judged.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fixtures import needs_namespaces
from hosts import SLOW, Host, Process
from interpreter import ENV, ROOT, python
from watched_fleet import SMALL, Fleet, calm

PROMTOOL = ROOT / ".venv" / "brokers" / "promtool"  # see tools/bootstrap.sh
ALERTS = ROOT / "packaging" / "prometheus" / "um-alerts.yml"
WHERE = "127.0.0.1"
OPTIONS = ("-i", WHERE, "-o", SMALL[0], "-o", SMALL[1])
NAMED = re.compile(r"^(um_process_up|um_receiver_topic_info)\{(.*)\} (\S+)$", re.M)
LABEL = re.compile(r'(\w+)="([^"]*)"')


class Watchers:
    """All that may name who is stopped: when it first did, in seconds after `begin`."""

    def __init__(self, fleet: Fleet, top: Process, metrics: str) -> None:
        self.fleet, self.top, self.metrics = fleet, top, metrics
        self.scraped = ""

    def page(self, pid: int) -> bool:
        """The first row of the ranking is it."""
        rows = self.fleet.ask("/api/overview")["ranking"]
        return any((row["host"], row["pid"], row["topics"]) == (WHERE, pid, ["prices"]) for row in rows)

    def tables(self, pid: int) -> bool:
        """A line of `um top` is it."""
        named = [(each["host"], each["process"], each["topics"]) for each in self._lines() if "reasons" in each]
        return (WHERE, pid, ["prices"]) in named

    def heard(self) -> bool:
        """`um top` and the exporter know each of the five receivers, and its topic."""
        self.scraped = self.fleet.ask_at(self.metrics)
        told = [each["monitored"] for each in self._lines() if "monitored" in each]
        exported = re.findall(r'^um_receiver_topic_info{.*topic="prices"', self.scraped, re.M)
        return bool(told) and (told[-1]["receivers"], told[-1]["topics"], len(exported)) == (5, 5, 5)

    def _lines(self) -> list[dict[str, Any]]:
        complete = (line for line in self.top.output.splitlines() if line.startswith("{") and line[-1] == "}")
        return [json.loads(line) for line in complete]

    def scrape(self, pid: int) -> bool:
        """The metric that the alert is made of says so."""
        self.scraped = self.fleet.ask_at(self.metrics)
        return re.search(rf'^um_process_up{{host="{WHERE}",.*process="{pid}"}} 0', self.scraped, re.M) is not None


def alerts(scraped: str, folder: Path, expected: list[dict[str, str]]) -> None:
    """Let promtool apply the rules to what was scraped, and compare the alerts that are raised."""
    series = [
        {"series": f"{name}{{{labels}}}", "values": f"{value}x10"} for name, labels, value in NAMED.findall(scraped)
    ]
    raised = []
    for labels in expected:
        who = f"Process {labels['process']} of {labels['application']} on {labels['host']}"
        told = {
            "summary": f"{who} is silent, receiver of {labels['topic']}",
            "description": re.findall(r'description: "(.*)"', ALERTS.read_text())[0],
        }
        raised.append({"exp_labels": {**labels, "severity": "critical"}, "exp_annotations": told})
    tried = {"eval_time": "5s", "alertname": "UmProcessSilent", "exp_alerts": raised}
    tests = [{"interval": "1s", "input_series": series, "alert_rule_test": [tried]}]
    given = {"rule_files": [str(ALERTS)], "evaluation_interval": "1s", "tests": tests}
    (folder / "scraped.yml").write_text(json.dumps(given))
    command = [str(PROMTOOL), "test", "rules", str(folder / "scraped.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_namespaces
def test_s4_page_top_and_alert_name_one_stopped_receiver_of_five(host: Host, tmp_path: Path) -> None:
    if not PROMTOOL.exists():
        pytest.skip("promtool is not here: tools/bootstrap.sh test")
    fleet = Fleet(host, WHERE)
    top = host.start_command(*python("-m", "um_cffi", "top", "--json", *OPTIONS, "^prices$"), env=ENV)
    exporter = host.start_command(
        *python("-m", "um_cffi", "exporter", "--listen", "127.0.0.1:0", *OPTIONS), env=ENV
    ).expect(r"(http://[\d.:]+/metrics)")[1]
    fleet.start(host, "send", "feed", "prices", WHERE, "lbtrm")
    receivers = [fleet.start(host, "receive", f"client-{number}", "prices", WHERE, "lbtrm") for number in range(5)]
    fleet.until(calm(5))
    watchers = Watchers(fleet, top, exporter)
    end = time.monotonic() + 60 * SLOW
    while not watchers.heard():
        assert time.monotonic() < end, (top.output[-2000:], watchers.scraped)
    stopped = receivers[2]
    begin = time.monotonic()
    stopped.suspend()
    waiting: dict[str, Callable[[int], bool]] = {
        "the page": watchers.page,
        "um top": watchers.tables,
        "/metrics": watchers.scrape,
    }
    while waiting:
        for name, names in list(waiting.items()):
            if names(stopped.pid):
                del waiting[name]
                print(f"{name} names the stopped receiver after {time.monotonic() - begin:.1f} s")
        assert time.monotonic() < begin + 60 * SLOW, (list(waiting), top.output[-2000:], watchers.scraped)
    mine = [dict(LABEL.findall(labels)) for name, labels, _ in NAMED.findall(watchers.scraped) if "topic" in name]
    expected = [labels for labels in mine if labels["process"] == str(stopped.pid)]
    assert [(each["host"], each["application"], each["topic"]) for each in expected] == [(WHERE, "client-2", "prices")]
    alerts(watchers.scraped, tmp_path, expected)
    stopped.signal(signal.SIGCONT)
