"""Encrypted TCP beside a loop that calls OpenSSL directly, and beside TCP in the open."""

from __future__ import annotations

from cells import Cells, rate
from report import Report

SIZES = (64, 1024, 8192)
JUDGED = 8192


def tls(cells: Cells, report: Report) -> None:
    for size in SIZES:
        args = ["--mode", "oneway", "--size", str(size), "--batch", "65536" if size < JUDGED else "8192"]
        raw, um, plain = cells.medians(
            "msgs_per_s", *(["bench_tcp", "--impl", impl, *args] for impl in ("rawtls", "umtls", "um"))
        )
        what = f"TLS, {size} B one way"
        measured = f"bare OpenSSL {rate(raw)}, libum {rate(um)}, libum in the open {rate(plain)}"
        if size == JUDGED:
            ratio = um["msgs_per_s"] / raw["msgs_per_s"]
            report.target(f"{what}, share of a bare OpenSSL loop", ratio, 0.8, True, measured)
        else:
            report.note(what, measured)
