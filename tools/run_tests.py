#!/usr/bin/env python3
"""Runs every check of the project and adds up the results. The parts are in tools/checks.

All jobs share one pool: builds, test programs, parts of pytest, fuzz targets, the longest first. What runs is told
every half minute, a failure at once. The last line of the whole run is "N passed, M failed, K skipped", summed over
all runners, and the exit status is 1 when anything failed.

    tools/run_tests.py                  everything (what `make test` and the CI machine run)
    tools/run_tests.py --check          the developer's loop: no sanitizers, fewer seeds (`make check`)
    tools/run_tests.py --stage c        one stage and the build it needs (may be given several times)
    tools/run_tests.py --only lbtrm     only jobs with that in their name
    tools/run_tests.py --soak           the long run, two hours on two cores; may be combined with --stage: what is
                                        measured replaces the figures of that stage in docs/reliability.md
    tools/run_tests.py --record         also keeps the times of the jobs in tests/times.tsv

UM_FUZZ_SECONDS (15) is the time given to each fuzz target whose code has not changed. UM_SIM_BASE is the number that
the seeds of the simulators begin behind, by default from the commit. UM_CHECKS_UNTIL, in seconds since the machine was
started (/proc/uptime), ends a run that would take longer; what is missing then has failed.
"""

import sys

from checks.main import main

if __name__ == "__main__":
    sys.exit(main())
