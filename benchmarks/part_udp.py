"""LBT-RM and LBT-RU over a veth cable beside a bare loop that moves the same datagrams, beside Cyclone DDS and OpenPGM,
and under loss.
"""

from __future__ import annotations

from cells import Cells, rate, times
from report import Report

BATCHED = ("--size", "64", "--batch", "8192")
DDS_BATCHES = ("14720", "65500")  # its default size and 64 KiB; the quicker one counts


def reliable_udp(cells: Cells, report: Report) -> None:
    for transport, name in (("rm", "LBT-RM"), ("ru", "LBT-RU")):
        for size, batch, bound in ((64, 2048, 0.5), (64, 8192, 0.5), (700, 16, 0.8)):
            args = ["--transport", transport, "--size", str(size), "--batch", str(batch)]
            raw, um = cells.medians("msgs_per_s", *(["bench_udp", "--impl", impl, *args] for impl in ("raw", "um")))
            how = f"{batch} B batches" if batch > size else "unbatched"
            report.target(
                f"{name} {size} B one way, {how}, share of the bare loop",
                um["msgs_per_s"] / raw["msgs_per_s"],
                bound,
                True,
                f"bare {rate(raw)}, libum {rate(um)}",
            )
        for spin in (False, True):
            args = ["--transport", transport, "--mode", "pingpong", "--size", "64", "--batch", "16"]
            args += ["--spin"] if spin else []
            raw, um = cells.medians("p50_us", *(["bench_udp", "--impl", impl, *args] for impl in ("raw", "um")))
            report.target(
                f"{name} 64 B there and back, {'spinning' if spin else 'blocking'}, p50 over the bare loop",
                um["p50_us"] / raw["p50_us"],
                1.25,
                False,
                f"bare {times(raw)}, libum {times(um)} (p50 / p99 / p99.9)",
            )


def peers(cells: Cells, report: Report) -> None:
    lines = [["bench_udp", "--impl", "um", "--transport", "rm", "--mode", "oneway", *BATCHED]]
    names = ["libum"]
    if cells.has("bench_dds"):
        lines += [["bench_dds", "--mode", "oneway", "--size", "64", "--batch", batch] for batch in DDS_BATCHES]
        names += [f"Cyclone DDS, batches of {batch} B" for batch in DDS_BATCHES]
    if cells.has("bench_pgm"):
        lines.append(["bench_pgm", "--mode", "oneway", "--size", "64"])
        names.append("OpenPGM")
    if len(lines) == 1:
        report.note("Cyclone DDS and OpenPGM", "not installed (tools/bootstrap.sh bench): not compared")
        return
    found = cells.medians("msgs_per_s", *lines)
    measured = ", ".join(f"{name} {rate(row)}" for name, row in zip(names, found))
    best = max(float(row["msgs_per_s"]) for row in found[1:])
    ratio = found[0]["msgs_per_s"] / best
    report.target("LBT-RM 64 B batched, times the better of the peers", ratio, 2.5, True, measured)


def under_loss(cells: Cells, report: Report) -> None:
    lines = [["bench_loss", "--size", "64", "--rate", "50000", "--loss", loss] for loss in ("0", "100")]
    clean, lossy = cells.medians("p999_us", *lines)
    report.target(
        "M6: LBT-RM, 50,000 messages/s, p99.9 under 0.01 % loss over loss-free",
        lossy["p999_us"] / clean["p999_us"],
        3.0,
        False,
        f"loss-free {times(clean)}, with loss {times(lossy)} (p50 / p99 / p99.9)",
    )


def udp_peers(cells: Cells, report: Report) -> None:
    peers(cells, report)
    under_loss(cells, report)
