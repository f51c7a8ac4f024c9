"""`um web` and real processes: who is stopped, and who is behind a link that loses, has a name on the page.

Requirement S4: nobody should have to guess which receiver is slow.
"""

from __future__ import annotations

import re
import signal
import time

from fixtures import needs_namespaces
from hosts import Host
from relay import Star
from watched_fleet import Fleet, calm


@needs_namespaces
def test_s4_one_of_five_receivers_is_stopped_and_named(host: Host) -> None:
    fleet = Fleet(host, "127.0.0.1")
    fleet.start(host, "send", "feed", "prices", "127.0.0.1", "lbtrm")
    receivers = [
        fleet.start(host, "receive", f"client-{number}", "prices", "127.0.0.1", "lbtrm") for number in range(5)
    ]
    before = fleet.until(calm(5))
    assert before["ranking"] == []
    receivers[2].suspend()
    said = fleet.until(lambda said: said["verdict"]["level"] == "silent" and len(said["ranking"]) == 1)
    (row,) = said["ranking"]
    assert (row["host"], row["application"], row["pid"]) == ("127.0.0.1", "client-2", receivers[2].pid)
    assert row["topics"] == ["prices"] and row["level"] == "silent"
    assert said["verdict"]["parts"][0]["who"] == "client-2 on 127.0.0.1"
    assert abs(row["since"] - said["verdict"]["parts"][0]["since"]) < 0.2
    receivers[2].signal(signal.SIGCONT)
    back = fleet.until(lambda said: any(each["kind"] == "process_back" for each in said["events"]))
    assert any("client-2" in each["who"] for each in back["events"] if each["kind"] == "process_back")


@needs_namespaces
def test_an_interface_that_goes_down_is_an_event_of_each_process_on_it() -> None:
    star = Star(3, seed=4)
    try:
        fleet = Fleet(star.hosts[0], Star.address(0))
        fleet.start(star.hosts[0], "send", "feed", "prices", Star.address(0), "lbtrm")
        for number in (1, 2):
            fleet.start(star.hosts[number], "receive", f"client-{number}", "prices", Star.address(number), "lbtrm")
        fleet.until(calm(2))
        star.unplug(2)
        star.plug(2)

        def told(_: object) -> bool:
            events = fleet.ask("/api/events?kind=interface")["events"]
            return {each["text"].split(":")[0] for each in events} == {"Core-9030-1", "Core-9030-2"}

        fleet.until(told)
        events = fleet.ask("/api/events?kind=interface")["events"]
        assert {each["who"] for each in events} == {f"client-2 on {Star.address(2)}"}
        assert all("interface eth0 is" in each["text"] for each in events)
    finally:
        star.close()


@needs_namespaces
def test_s4_who_is_behind_a_link_that_loses_is_named_and_nobody_else() -> None:
    star = Star(4, seed=3)
    try:
        fleet = Fleet(star.hosts[0], Star.address(0))
        fleet.start(star.hosts[0], "send", "feed", "prices", Star.address(0), "lbtrm")
        for number in (1, 2, 3):
            names = ("one", "two") if number == 2 else ("one",)
            for name in names:
                fleet.start(star.hosts[number], "receive", f"{name}-{number}", "prices", Star.address(number), "lbtrm")
        fleet.until(calm(4))
        star.rule("link", kinds="rm.data", to=2, loss="1%")
        said = fleet.until(lambda said: len(said["ranking"]) == 2)
        for _ in range(10):
            assert {(row["application"], row["host"]) for row in said["ranking"]} == {
                ("one-2", Star.address(2)),
                ("two-2", Star.address(2)),
            }
            time.sleep(0.2)
            said = fleet.until(lambda said: len(said["ranking"]) >= 2)
        assert all(re.search("missed|NAKs", " ".join(row["reasons"])) for row in said["ranking"])
        blamed = {each["who"] for each in said["events"] if each["kind"] in ("loss", "unrecovered")}
        assert blamed == {f"{name} on {Star.address(2)}" for name in ("one-2", "two-2")}
    finally:
        star.close()
