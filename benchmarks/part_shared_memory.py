"""LBT-IPC and LBT-SMX beside bare rings in shared memory."""

from __future__ import annotations

from pathlib import Path

from cells import Cells, rate, times
from plots import plot_histograms
from report import Report


def ipc(cells: Cells, report: Report) -> None:
    """Against a bare futex ping-pong and a bare ring of batches."""
    for spin in (False, True):
        args = ["--mode", "pingpong", "--size", "64", *(["--spin"] if spin else [])]
        raw, um = cells.medians("p50_us", *(["bench_ipc", "--impl", impl, *args] for impl in ("raw", "um")))
        what, measured = "LBT-IPC 64 B there and back", f"bare {times(raw)}, libum {times(um)} (p50 / p99 / p99.9)"
        if spin:
            report.note(f"{what}, busy waiting", measured)
        else:
            ratio = um["p50_us"] / raw["p50_us"]
            report.target(f"{what}, waiting, p50 over a bare futex", ratio, 1.25, False, measured)
    for batch in ("8192", "65536"):
        args = ["--mode", "oneway", "--size", "64", "--batch", batch]
        raw, um = cells.medians("msgs_per_s", *(["bench_ipc", "--impl", impl, *args] for impl in ("raw", "um")))
        report.note(f"LBT-IPC 64 B one way, {batch} B batches", f"bare ring {rate(raw)}, libum {rate(um)}")


def smx(cells: Cells, report: Report, out: Path) -> None:
    """Against a bare slot ring (commit word in the slot), between cores equally far from each other only."""
    args = ["--mode", "pingpong", "--size", "64"]
    raw, um = cells.medians("p50_us", *(["bench_smx", "--impl", impl, *args] for impl in ("raw", "um")), alike=True)
    report.target(
        "LBT-SMX 64 B there and back, p50 over a bare slot ring",
        um["p50_us"] / raw["p50_us"],
        1.3,
        False,
        f"bare {raw['p50_us']:.2f} us, libum {um['p50_us']:.2f} us",
    )
    for impl in ("raw", "um"):
        env = {"UM_BENCH_HISTOGRAM": str(out / f"smx-{impl}.hgrm")}
        cells.once("bench_smx", "--impl", impl, *args, "--seconds", cells.seconds, env=env)
    plot_histograms(out)
    for batch, how in (("1", "one publication per message"), ("64", "batches of 64")):
        impls = ("raw", "um", "umsend") if batch == "1" else ("raw", "um")
        args = ["--mode", "oneway", "--size", "64", "--batch", batch]
        found = cells.medians("msgs_per_s", *(["bench_smx", "--impl", impl, *args] for impl in impls), alike=True)
        names = ("bare slot ring", "libum acquire and complete", "lbm_src_send")
        measured = ", ".join(f"{name} {rate(row)}" for name, row in zip(names, found))
        ratio = found[1]["msgs_per_s"] / found[0]["msgs_per_s"]
        report.target(f"LBT-SMX 64 B one way, {how}, share of the ring", ratio, 0.7, True, measured)
