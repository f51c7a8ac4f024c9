"""Compressed TCP beside a loop that calls liblz4 directly, and beside TCP without compression."""

from __future__ import annotations

from cells import Cells, Result
from report import Report

SIZES = (64, 1024, 8192)
JUDGED = 8192


def rate(result: Result) -> str:
    """Bytes of the messages, before compression."""
    return f"{result['mb_per_s']:.0f} MB/s"


def lz4(cells: Cells, report: Report) -> None:
    for size in SIZES:
        args = ["--mode", "oneway", "--size", str(size), "--batch", "65536" if size < JUDGED else "8192"]
        raw, um, plain = cells.medians(
            "msgs_per_s", *(["bench_tcp", "--impl", impl, *args] for impl in ("rawlz4", "umlz4", "um"))
        )
        what = f"LZ4, {size} B one way"
        measured = (
            f"bare liblz4 {rate(raw)}, libum {rate(um)}, libum without compression {rate(plain)}; "
            f"compressed to {raw['compressed_to']:.0%}"
        )
        ratio = um["msgs_per_s"] / raw["msgs_per_s"]
        if size == JUDGED:
            report.target(f"{what}, share of a bare liblz4 loop", ratio, 0.8, True, measured)
        else:
            report.note(what, f"{measured}; share {ratio:.2f}")
