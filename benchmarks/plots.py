"""The pictures of a benchmark run. Without matplotlib there are none, and a line says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Result = dict[str, Any]


def figure(path: Path, title: str, labels: tuple[str, str], draw: Callable[[Any], None]) -> None:
    """One picture with logarithmic axes."""
    try:
        import matplotlib
    except ImportError:
        print(f"  matplotlib is not installed: no {path.name}")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axis = plt.subplots(figsize=(7, 4))
    axis.set_yscale("log")
    draw(axis)
    axis.set_xlabel(labels[0])
    axis.set_ylabel(labels[1])
    axis.set_title(title)
    axis.legend()
    axis.grid(True, which="both", alpha=0.3)
    fig.tight_layout()
    fig.savefig(path, dpi=120)
    plt.close(fig)


def plot_throughput(rows: Sequence[Result], path: Path) -> None:
    """TCP throughput by message size."""

    def draw(axis: Any) -> None:
        for impl, label in (("raw", "bare loop"), ("um", "libum"), ("zmq", "libzmq")):
            chosen = [r for r in rows if r["cell"].startswith("bench_tcp") and r["impl"] == impl]
            found = {r["size"]: r["msgs_per_s"] / 1e6 for r in chosen if r["batch"] == 65536 and "msgs_per_s" in r}
            axis.plot(sorted(found), [found[size] for size in sorted(found)], marker="o", label=label)
        axis.set_xscale("log", base=2)

    labels = ("message size, bytes", "million messages per second")
    figure(path, "TCP one way, 64 KiB batches, two cores, loopback", labels, draw)


def plot_histograms(out: Path) -> None:
    """Round trips over LBT-SMX by percentile."""

    def draw(axis: Any) -> None:
        for impl, label in (("raw", "bare slot ring"), ("um", "LBT-SMX")):
            lines = [line.split() for line in (out / f"smx-{impl}.hgrm").read_text().splitlines()[1:]]
            points = [(float(line[3]), float(line[0])) for line in lines if line[3] != "inf"]
            axis.plot([x for x, _ in points], [y for _, y in points], label=label)
        axis.set_xscale("log")
        axis.set_xticks([1, 10, 100, 1000, 10000, 100000], ["0", "90", "99", "99.9", "99.99", "99.999"])

    title = "Ping-pong of 64 bytes through shared memory, two cores, busy waiting"
    figure(out / "smx-latency.png", title, ("percentile", "round trip, us"), draw)
