"""The daemon srs as a process of its own, with a crowd of contexts in other processes; killed and restarted meanwhile.

With UM_SOAK the counts of requirement D4: 200 contexts and 100,000 topics. How long things take is judged by
benchmarks/run.py --only srs; here it is recorded.
"""

from __future__ import annotations

import json
import os

from figures import record
from hosts import BUILD, SLOW, Host, program

SOAK = bool(os.environ.get("UM_SOAK"))
PROCESSES, CONTEXTS, TOPICS = (4, 50, 500) if SOAK else (4, 5, 50 // SLOW)
OUTAGE_MS = 5000 if SOAK else 200


def test_d4_a_crowd_is_resolved_by_the_daemon_alone_and_again_after_its_death(host: Host) -> None:
    host.run("ip", "link", "set", "lo", "mtu", "1500")
    crowd = host.start_command(
        str(BUILD / "tests" / "support" / "srs_crowd"),
        program("srs"),
        *map(str, (PROCESSES, CONTEXTS, TOPICS, OUTAGE_MS)),
    )
    result = json.loads(crowd.finish(600).splitlines()[-1])
    assert (result["contexts"], result["topics"]) == (PROCESSES * CONTEXTS, PROCESSES * CONTEXTS * TOPICS)
    assert result["datagrams"] == 0
    assert result["early"] == 0  # nobody finds anything while the daemon is away
    assert result["ended"] == 0  # and no session ends because of that
    what = f"{result['contexts']} contexts, {result['topics']} topics, a process of srs"
    record(f"{what}: resolved after", f"{result['resolved_s']:.2f} s, {result['segments']:.0f} segments")
    record(f"{what}: killed, restarted, all known again after", f"{max(result['late_s'], result['told_s']):.2f} s")
