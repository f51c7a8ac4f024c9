"""The scheduler of the checks (tools/checks): order, shares of the processors, hang limits, seeds."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest
import spark_java
from pids import runs

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from checks import changes, ctests, fuzzing, main, process, pytests, record, schedule  # noqa: E402
from checks.process import Tally  # noqa: E402
from checks.schedule import Job, Pool, Result  # noqa: E402


def job(name: str, seconds: float, share: float = 1.0, alone: bool = False) -> Job:
    return Job(name, "stage", lambda: Tally(passed=1), seconds=seconds, share=share, alone=alone)


def begun_together(jobs: list[Job]) -> list[str]:
    """Names of those that a pool begins before any has ended."""
    waiting = list(jobs)
    running: list[Job] = []
    while (one := schedule.next_to_begin(waiting, running)) is not None:
        waiting.remove(one)
        running.append(one)
    return [one.name for one in running]


def test_the_longest_begin_first_and_working_jobs_get_a_processor_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "CORES", 2)
    jobs = [job("short", 1), job("long", 9), job("middle", 5), job("other", 4)]
    assert begun_together(jobs) == ["long", "middle"]
    monkeypatch.setattr(schedule, "SLACK", 1.0)  # shares are means
    assert begun_together(jobs) == ["long", "middle", "other"]


def test_jobs_that_wait_run_beside_those_that_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "CORES", 2)
    names = ["works", "works too", "works as well"]
    jobs = [*(job(name, 9) for name in names), job("waits", 7, 0.1), job("other", 5)]
    assert begun_together(jobs) == [*names[:2], "waits"]
    assert begun_together(jobs[2:]) == [names[2], "waits", "other"]


def test_what_runs_in_the_background_takes_nobodys_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as there are processors, beside as many others as without them, and not beside what runs alone."""
    monkeypatch.setattr(schedule, "CORES", 2)
    behind = [job(name, 20) for name in ("fuzz", "fuzz too", "fuzz as well")]
    for each in behind:
        each.background = True
    others = [job("long", 9), job("middle", 5), job("other", 4), job("short", 1)]
    assert begun_together([*behind, *others]) == ["fuzz", "fuzz too", "long", "middle"]
    alone = job("alone", 99, alone=True)
    assert begun_together([behind[0], alone, others[0]]) == ["fuzz", "long"]
    assert begun_together([behind[0], alone]) == ["alone"]  # the background goes on behind it
    assert schedule.next_to_begin([behind[0]], [alone]) is None
    assert schedule.next_to_begin([behind[0], alone], [behind[1]]) is None  # it begins when this one has ended


def test_the_background_gets_less_where_time_is_short_but_never_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "CORES", 2)
    monkeypatch.setattr(schedule, "USABLE", 0.5)
    assert schedule.shortened(15, left=1000, jobs=20) == 15
    assert schedule.shortened(15, left=1000, jobs=20, ahead=680) == 10
    assert schedule.shortened(15, left=320, jobs=20) == 10
    assert schedule.shortened(15, left=60, jobs=20) == schedule.BACKGROUND_LEAST_SECONDS
    assert schedule.shortened(15, left=1000, jobs=20, ahead=5000) == schedule.BACKGROUND_LEAST_SECONDS
    late = job("fuzz", 15)
    late.background = True
    late.work = lambda: Tally(passed=1, cpu=late.seconds)
    said: list[str] = []
    (result,) = Pool({}, until=time.monotonic() + 60, say=said.append).run([late])
    assert result.tally.cpu == schedule.BACKGROUND_LEAST_SECONDS and "for want of time" in said[0]


def test_the_background_waits_for_what_is_recorded_of_the_others_on_a_slow_machine() -> None:
    """Of those that builds have yet to bring too: 700 s of a processor, on a machine that takes twice as long."""
    times = {"stage/now": (20.0, 40.0), "stage/later": (400.0, 700.0)}
    now, late = job("stage/now", 20), job("fuzz", 15)
    now.work = lambda: Tally(passed=1, cpu=80.0)
    late.background = True
    late.work = lambda: Tally(passed=1, cpu=late.seconds)
    cores, reserve = process.CORES * schedule.USABLE, schedule.BACKGROUND_RESERVE_SECONDS

    def given(left: float) -> float:
        until = time.monotonic() + left
        pool = Pool(times, until=until, say=lambda text: None)
        pool.results.append(Result(now, now.work(), 20.0))
        late.seconds = 15
        return pool.run([late])[-1].tally.cpu

    assert given(reserve + 1410 / cores) == pytest.approx(10, abs=0.5)
    assert given(reserve + 1500 / cores) == 15
    assert given(reserve + 1400 / cores) == schedule.BACKGROUND_LEAST_SECONDS


def test_a_program_with_a_budget_is_asked_to_end_when_it_has_used_it() -> None:
    program = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(f'asked at {os.getpriority(os.PRIO_PROCESS, 0)}'))\n"
        "while True: pass\n"
    )
    outcome = process.run([sys.executable, "-c", program], 60, budget=0.5)
    assert (outcome.code, outcome.output) == (1, f"asked at {process.LOW_PRIORITY}\n")
    try:
        process.make_room(False)
        assert process.run([sys.executable, "-c", program], 60, budget=0.5).output == "asked at 0\n"
    finally:
        process.make_room(True)
    assert outcome.cpu >= 0.5


def test_the_background_makes_room_until_the_others_have_ended() -> None:
    seen: list[tuple[str, bool]] = []

    def look(job: schedule.Job, until: bool) -> Tally:
        while process.makes_room() != until:
            time.sleep(0.01)
        seen.append((job.name, process.makes_room()))
        return Tally(passed=1)

    behind, ahead, alone = job("fuzz", 15), job("test", 15), job("alone", 15, alone=True)
    behind.background = True
    behind.work, ahead.work = lambda: look(behind, False), lambda: look(ahead, True)
    alone.work = lambda: look(alone, False)
    try:
        Pool({}).run([behind, ahead, alone])
    finally:
        process.make_room(True)
    assert seen == [("test", True), ("fuzz", False), ("alone", False)]  # who waits for it has no use for the room


def test_what_runs_alone_comes_last_and_with_nothing_beside_it() -> None:
    assert begun_together([job("alone", 99, 0.1, alone=True), job("other", 1, 0.1)]) == ["other"]
    assert begun_together([job("alone", 1, alone=True), job("alone too", 2, alone=True)]) == ["alone too"]


def test_what_is_judged_by_time_and_mostly_waits_runs_beside_its_like(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "CORES", 2)
    waits = [job(name, 9, 0.2, alone=True) for name in ("one", "two", "three")]
    works = job("works", 8, alone=True)
    assert begun_together([works, *waits]) == ["one", "two"]
    assert begun_together([works, job("short", 1, 0.1, alone=True)]) == ["works"]
    assert schedule.next_to_begin([job("other", 9, 0.1)], waits[:1]) is None


def test_the_long_run_measures_pauses_and_streams_with_nothing_beside_it() -> None:
    jobs = pytests.jobs_of_release("python", {"UM_SOAK": "1"})
    alone = {each.name for each in jobs if each.alone}
    wanted = {f"python/{name}" for name in pytests.PAUSES + pytests.STREAMS}
    assert alone == wanted | {each.name for each in pytests.jobs_of_release("python") if each.alone}
    assert not wanted & {each.name for each in pytests.jobs_of_release("python") if each.alone}
    (stream,) = (schedule.expect(each, schedule.read_times()) for each in jobs if each.name.endswith(pytests.STREAMS))
    assert stream.share > schedule.QUIET_SHARE  # not beside others that run alone, either


def test_times_are_kept_and_give_the_share(tmp_path: Path) -> None:
    schedule.write_times({"b": (10.0, 2.5), "a": (4.0, 4.0)}, tmp_path / "times.tsv")
    times = schedule.read_times(tmp_path / "times.tsv")
    assert times == {"a": (4.0, 4.0), "b": (10.0, 2.5)}
    known = schedule.expect(job("b", 1), times)
    assert (known.seconds, known.share) == (10.0, 0.25)


def test_jobs_that_follow_are_run_and_a_failed_build_has_none() -> None:
    good = Job("good", "stage", lambda: Tally(passed=1), lambda: [job("follows", 1)])
    bad = Job("bad", "stage", lambda: Tally(failed=1, complaints=["broken"]), lambda: [job("never", 1)])
    said: list[str] = []
    results = Pool({}, say=said.append).run([good, bad])
    assert {result.job.name for result in results} == {"good", "bad", "follows"}
    assert "broken" in said


def test_an_error_of_a_job_is_a_failure_with_its_text() -> None:
    def broken() -> Tally:
        raise RuntimeError("no such tree")

    (result,) = Pool({}, say=lambda text: None).run([Job("broken", "stage", broken)])
    assert result.tally.failed == 1 and "no such tree" in result.tally.complaints[0]


def test_jobs_that_cannot_be_listed_are_a_failure() -> None:
    def follow() -> list[Job]:
        raise RuntimeError("ctest is missing")

    results = Pool({}, say=lambda text: None).run([Job("built", "stage", lambda: Tally(passed=1), follow)])
    assert sum(result.tally.failed for result in results) == 1


def test_what_is_missing_when_the_time_is_over_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "CORES", 1)
    monkeypatch.setattr(schedule, "SLACK", 0.0)
    monkeypatch.setattr(schedule, "kill_everything", lambda: None)

    over = threading.Event()

    def slow() -> Tally:
        over.wait(60)
        return Tally(passed=1)

    def say(text: str) -> None:
        if "over its time" in text:
            over.set()

    jobs = [Job("first", "stage", slow, urgent=True), *(job(str(n), 1) for n in range(3))]
    results = Pool({}, until=time.monotonic(), say=say).run(jobs)
    assert len(results) == 4 and sum(result.tally.failed for result in results) == 3


def test_a_program_that_hangs_is_ended_with_its_children() -> None:
    script = "echo begun; setsid sh -c 'echo $$; sleep 600; true' & sleep 600"
    for seconds in (1.0, 10.0, 100.0):  # enough for it to begin
        outcome = process.run(["sh", "-c", script], seconds)
        assert outcome.code == -9 and "it hangs" in outcome.output
        found = re.findall(r"^(\d+)$", outcome.output, re.MULTILINE)  # in a session of its own
        if found:
            break
    assert "begun" in outcome.output
    (other,) = found
    end = time.monotonic() + 30
    while runs(int(other)):
        assert time.monotonic() < end, "it is still there"
        time.sleep(0.01)


def test_what_goes_on_does_not_hang_however_long_it_takes() -> None:
    steps = "import sys, time\nfor _ in range(30):\n    print(flush=True)\n    time.sleep(float(sys.argv[1]) / 10)"
    for seconds in (1.0, 10.0, 100.0):  # on a busy machine a step takes longer
        outcome = process.run([sys.executable, "-c", steps, str(seconds)], seconds)
        if outcome.code == 0:
            break
    assert outcome.code == 0 and outcome.seconds > 2 * seconds
    for seconds in (0.5, 5.0, 50.0):  # enough for it to begin
        outcome = process.run(["sh", "-c", "while echo; do sleep 0.01; done"], seconds)
        assert outcome.code == -9 and "it hangs" in outcome.output
        if outcome.seconds >= process.ENDLESS * seconds:
            break
    assert outcome.seconds >= process.ENDLESS * seconds


def test_a_program_that_gets_its_processor_seconds_late_does_not_hang() -> None:
    working = "import time\nfor _ in range(40):\n    until = time.process_time() + 0.02\n"
    working += "    while time.process_time() < until: pass\n    time.sleep(0.05)"
    try:
        process.make_room(False)  # at a low priority it is late by minutes, where others keep the processors busy
        for seconds in (1.0, 10.0, 100.0):
            outcome = process.run([sys.executable, "-c", working], seconds, budget=100.0)
            if outcome.code == 0:
                break
        assert outcome.code == 0
    finally:
        process.make_room(True)
    outcome = process.run(["sh", "-c", "trap : USR1; while :; do :; done"], 1.0, budget=0.1)  # it will not end
    assert outcome.code == -9 and "it hangs" in outcome.output


def test_a_program_may_leave_children_that_hold_its_output() -> None:
    outcome = process.run(["sh", "-c", "sleep 600 & echo done"], 300)
    assert (outcome.code, outcome.output) == (0, "done\n")
    assert outcome.seconds < 300


def test_a_complaint_names_the_functions_of_a_report_that_has_addresses_only(tmp_path: Path) -> None:
    source, library = tmp_path / "leaky.c", tmp_path / "leaky.so"
    source.write_text("int leaky(void) { return 1; }\n")
    subprocess.run(["cc", "-g", "-shared", "-fPIC", "-o", library, source], check=True)
    listed = subprocess.run(["nm", library], check=True, capture_output=True, text=True).stdout
    (offset,) = re.findall(r"^([0-9a-f]+) T leaky$", listed, re.MULTILINE)
    report = f"    #1 0x7f45 ({library}+{int(offset, 16):#x})  (BuildId: 12ab)\n    #2 0x7f46 ({library}+0xffffff)\n"
    (complaint,) = process.failure("test_x.py", process.Outcome(1, report * 2)).complaints
    assert complaint.count("is leaky at ") == 1 and "leaky.c:1" in complaint


def test_a_summary_that_is_missing_incomplete_or_contradicted_is_a_failure() -> None:
    assert ctests.count("t", process.Outcome(0, "3 passed, 0 failed, 1 skipped\n")).passed == 3
    assert ctests.count("t", process.Outcome(0, "killed")).failed == 1
    assert ctests.count("t", process.Outcome(23, "3 passed, 0 failed, 0 skipped\n")).failed == 1  # a leak at the end
    assert ctests.count("t", process.Outcome(0, "0 passed, 0 failed, 0 skipped\n"), 1).failed == 1  # no such scenario


def test_files_that_share_an_interpreter_are_judged_one_by_one(tmp_path: Path) -> None:
    """Neither a crash nor a failure of one is that of another; what is not reached has failed."""
    bodies = {
        "good": "pass",
        "crash": "os.abort()",
        "bad": "assert 0",
        "too": "pass",
        "end": "os.kill(os.getppid(), 9)",
    }
    files = []
    for name, body in bodies.items():
        files.append(str(tmp_path / f"test_{name}.py"))
        Path(files[-1]).write_text(f"import os\n\ndef test_{name}() -> None:\n    {body}\n")
    found = pytests.run_forked(files[:4], {}, process.HANG_SECONDS)
    assert (found.passed, found.failed) == (2, 2) and found.cpu > 0
    crash, bad = found.complaints
    assert "test_crash.py: exit -6" in crash and "assert 0" in bad and "assert 0" not in crash
    found = pytests.run_forked([files[0], files[4], files[3]], {}, process.HANG_SECONDS)
    assert (found.passed, found.failed) == (1, 1) and "test_end.py: exit -9" in found.complaints[0]


def test_long_scenarios_are_jobs_of_their_own() -> None:
    seconds = {"a": 1.0, "b": 30.0, "c": 0.1, "d": 4.0}
    assert ctests.split(seconds, lambda name: seconds[name]) == [["b"], ["d"], ["a", "c"]]


def test_changes_on_the_main_branch_are_those_of_a_day_or_of_the_last_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each commit adds the file of its name; without a commit that is old enough, everything has changed."""
    monkeypatch.setattr(changes, "ROOT", tmp_path)
    assert changes.changed_files(1) is None  # no repository
    changes.git("init", "-q", "-b", "main")
    for name, day in (("old", 1), ("late", 9), ("last", 9)):
        (tmp_path / name).touch()
        for who in ("AUTHOR", "COMMITTER"):
            monkeypatch.setenv(f"GIT_{who}_DATE", f"2026-01-{day:02}T12:00:00Z")
            monkeypatch.setenv(f"GIT_{who}_NAME", "test")
            monkeypatch.setenv(f"GIT_{who}_EMAIL", "test@example.org")
        changes.git("add", name)
        changes.git("commit", "-q", "-m", name)
        if name == "old":
            assert changes.changed_files(1) is None and changes.changed_files(0) is None
    assert changes.changed_files(1) == {"late", "last"}
    assert changes.changed_files(0) == {"last"}
    changes.git("checkout", "-q", "-b", "topic")
    (tmp_path / "new").touch()
    assert changes.changed_files(1) == {"late", "last", "new"}  # nothing left the main branch yet
    changes.git("add", "new")
    changes.git("commit", "-q", "-m", "new")
    assert changes.changed_files(1) == {"new"} == changes.changed_files(0)


def test_full_counts_where_an_engine_has_changed_or_nobody_knows() -> None:
    assert changes.engines_changed(None)
    assert changes.engines_changed({"README.md", "csrc/wire/um_lbmc.c"})
    assert not changes.engines_changed({"README.md", "csrc/api/lbm_source.c", "tests/python/test_types.py"})
    assert changes.engines_changed({"csrc/transport/lbtr/um_lbtr.h"})
    assert not changes.engines_changed({"csrc/transport/tcp/um_tcp.h", "csrc/transport/smx/um_smx.h"})


def test_full_counts_where_what_simulators_include_has_changed() -> None:
    """Helpers of their own, engines of the core."""
    assert changes.engines_changed({"tests/c/support/um_test_srs.h"})
    assert not changes.engines_changed({"tests/c/support/um_test_tls.h", "tests/c/support/um_test.h"})
    core = [file for path in ROOT.glob("tests/sim/*_sim.c") for file in changes.code_of(path) if "csrc/core/" in file]
    assert core and all(changes.engines_changed({file}) for file in core)


def test_f27_fuzz_targets_run_longer_where_what_they_include_has_changed() -> None:
    target = ROOT / "tests" / "fuzz" / "lbmr_fuzz.c"
    assert changes.target_changed(target, None)
    assert changes.target_changed(target, {"csrc/wire/um_lbmr_ext.c"})
    assert changes.target_changed(target, {"tests/fuzz/corpus/lbmr_fuzz/new"})
    assert not changes.target_changed(
        target, {"csrc/base/um_log.c", "csrc/config/um_config.c", "csrc/wire/um_lbmsrs.c"}
    )


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("json_fuzz", "csrc/base/um_json.c"),  # what it is made for is in the folder that otherwise does not count
        ("pdm_fuzz", "csrc/pdm/um_pdm_read.c"),  # behind a public header
        ("pdm_columns_fuzz", "um_cffi/binding/um_py_pdm_columns.c"),
        ("srs_engine_fuzz", "csrc/resolver/um_srs_engine.c"),  # through a helper of the tests
        ("lbtrm_fuzz", "csrc/transport/lbtr/um_lbtr_window.c"),  # through a header of its folder
        ("config_text_fuzz", "csrc/config/options.def"),
    ],
)
def test_f27_what_a_fuzz_target_is_made_for_is_found(name: str, file: str) -> None:
    assert file in changes.code_of(ROOT / "tests" / "fuzz" / f"{name}.c")


def test_f27_every_fuzz_target_is_made_for_some_code() -> None:
    for source in fuzzing.targets():
        assert [file for file in changes.code_of(source) if file.startswith(("csrc/", "proto/"))], source


def test_every_regression_names_a_scenario() -> None:
    found = ctests.regressions()
    assert found
    for program, scenario, seed in found:
        assert f"TEST({scenario})" in (ROOT / "tests" / "sim" / f"{program}.c").read_text()
        assert int(seed) > 0


def test_f27_every_fuzz_target_has_a_corpus_and_every_corpus_a_target() -> None:
    targets = {path.stem for path in (ROOT / "tests" / "fuzz").glob("*_fuzz.c")}
    corpora = {path.name for path in (ROOT / "tests" / "fuzz" / "corpus").iterdir() if any(path.iterdir())}
    assert targets == corpora
    assert len(targets) >= 14


def test_the_end_of_what_failed_is_told_again_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    long = ["x" * 2 * main.LAST_WORDS, "the reason"]
    results = [Result(job("bad", 1), Tally(failed=1, complaints=long), 1.0), Result(job("good", 1), Tally(passed=1), 1)]
    main.repeat_failures(results)
    told = capsys.readouterr().out
    assert told.endswith("x\nthe reason\n== FAILED bad\n") and len(told) < main.LAST_WORDS + 100


def test_a_run_leaves_where_its_time_went(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "TRACE", tmp_path / "build" / "jobs.tsv")
    results = Pool({}, say=lambda _: None).run([Job("one", "stage", lambda: Tally(passed=1, cpu=0.5))])
    main.write_trace(results, results[0].began - 2)
    head, row = main.TRACE.read_text().splitlines()
    assert head.startswith("# began") and row.split("\t")[0] == "2.0" and row.endswith("\t0.5\tone")


def test_a_whole_long_run_forgets_old_figures_and_a_part_of_one_keeps_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    rows = "| sim | 1 passed | 2 s | then |\n\n| old figure | 3 | then |\n"
    page.write_text(f"head\n{record.BEGIN}\n{rows}{record.END}\ntail\n")
    monkeypatch.setattr(record, "PAGE", page)
    monkeypatch.setattr(record, "ROOT", tmp_path)
    monkeypatch.setattr(record, "FIGURES", tmp_path / "figures.tsv")
    record.note_figure("new figure", "4")
    result = record.StageResult("fuzz", Tally(passed=5), 6.0)
    record.record([result], "A part.", whole=False)
    text = page.read_text()
    assert "| old figure | 3 | then |" in text and "| sim | 1 passed | 2 s | then |" in text
    assert "| new figure | 4 |" in text and "| fuzz | 5 passed, 0 failed, 0 skipped | 6 s |" in text
    record.record([result], "A whole run.", whole=True)
    text = page.read_text()
    assert text.startswith("head\n") and text.endswith("tail\n")
    assert "then" not in text and "A part." not in text and "| new figure | 4 |" in text and "| fuzz | 5 passed" in text


def test_the_check_that_failed_is_told_last() -> None:
    leak = "    #1 0x55 in um_calloc /src/csrc/base/um_mem.c:34\n" * 1000
    output = f"ok   one\n/src/tests/c/a_test.c:7: CHECK(x) failed\nFAIL two\n{leak}"
    told = process.failure("a_test", process.Outcome(1, output)).complaints[0]
    assert told.splitlines()[-2:] == ["/src/tests/c/a_test.c:7: CHECK(x) failed", "FAIL two"]
    assert len(told) < process.COMPLAINT_CHARACTERS + 200
    where = '  File "/src/tests/python/test_py_one.py", line 79 in test_a'
    hangs = f"{where}\n" + '  File "/lib/_pytest/main.py", line 411 in pytest_runtestloop\n' * 10
    told = process.failure("test_py_one", process.Outcome(-9, f"{hangs}it hangs")).complaints[0]
    assert told.splitlines()[-2:] == ["it hangs", where]


ENDING = """
import signal, sys
from checks import main
signal.signal(signal.SIGTERM, main.end_once)
try:
    print("runs", flush=True)
    signal.pause()
finally:
    print("ending", flush=True)
    sys.stdin.readline()
    print("nothing is left", flush=True)
"""


def test_a_second_signal_does_not_keep_the_first_from_ending_what_runs() -> None:
    """As when a group is sent one, in which make passes on its own."""
    command = [sys.executable, "-c", ENDING]
    with subprocess.Popen(
        command, cwd=ROOT / "tools", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as run:
        assert run.stdin is not None and run.stdout is not None
        assert run.stdout.readline() == "runs\n"
        run.send_signal(signal.SIGTERM)
        assert run.stdout.readline() == "ending\n"
        run.send_signal(signal.SIGTERM)
        run.send_signal(signal.SIGINT)
        run.stdin.write("\n")
        assert run.stdout.read() == "nothing is left\n"
    assert run.returncode == 128 + signal.SIGTERM


def test_python_finds_packages_as_they_were_installed_where_spark_has_archives_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = tmp_path / "site" / "pyspark"
    (spark / "python" / "lib").mkdir(parents=True)
    (spark / "bin").mkdir()
    (spark / "__init__.py").touch()
    names = {"pyspark.zip": "pyspark", "other-1.2-src.zip": "other"}  # the other one is not installed
    for archive, package in names.items():
        with zipfile.ZipFile(spark / "python" / "lib" / archive, "w") as file:
            file.writestr(f"{package}/__init__.py", "")
    home = tmp_path / "home"
    monkeypatch.setattr(spark_java, "HOME", home)
    for _ in range(2):  # what is there already is made anew
        spark_java.make_home(spark)
    assert (home / "bin").samefile(spark / "bin")
    path = ":".join(str(home / "python" / "lib" / archive) for archive in names)
    code = "import other, pyspark; print(pyspark.__cached__); print(other.__spec__.loader)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    compiled, loader = done.stdout.splitlines()
    assert Path(compiled).parent.samefile(spark / "__pycache__")
    assert "zipimporter" in loader
