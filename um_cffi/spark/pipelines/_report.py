"""The daily report of monitoring records as one HTML file: tables and charts, with nothing from anywhere else in it.

Called on the driver with rows that were collected, which are few. All text in it may be a stranger's, and is escaped.
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

_APPLICATIONS = 8  # lines in a chart; the others are one line together
_OTHERS = "others"
_FEW = 40  # points of a line that are marked
_UNNAMED = "(no name)"

CHARTS: Mapping[str, tuple[str, str]] = {
    "processes": ("Processes that were heard of", "processes"),
    "messages": ("Messages received", "messages a second"),
    "lost": ("Datagrams that receivers lost at first", "datagrams"),
    "naks_sent": ("NAKs sent by receivers", "NAKs"),
    "repairs": ("Repairs sent by sources", "datagrams"),
    "blocked": ("Sends that had to wait", "sends"),
}
"""Columns of monitoring_timeline(), each with a chart: its title and its unit."""

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #1c2733 }
h1, h2 { line-height: 1.2 } h2 { margin-top: 2.5rem; border-bottom: 1px solid #c8d2dc }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-size: 13px; white-space: nowrap }
th, td { padding: .25rem .7rem; text-align: left; border-bottom: 1px solid #e2e8ee } th { background: #f1f5f8 }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums } p.note { color: #5a6a7a; font-size: 13px }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(30rem, 1fr)); gap: 1rem }
img { width: 100%; height: auto }
"""


@dataclass
class Table:
    """A table of the report."""

    title: str
    about: str
    """What its columns mean, in a sentence or two."""
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    total: int
    """Rows there are; more than are shown, where those are the first of them."""


@dataclass
class Report:
    """All that a report of a day has."""

    day: str
    """As YYYY-MM-DD, of UTC."""
    recording: str
    facts: Mapping[str, Any]
    """What is said at the top: names and values."""
    window_seconds: float
    timeline: Sequence[Any] = ()
    """The rows of monitoring_timeline()."""
    tables: list[Table] = field(default_factory=list)


def write_report(report: Report, path: str | os.PathLike[str]) -> None:
    """Write a report into the file `path`, all of it or nothing. ImportError without matplotlib, OSError."""
    made = html_of(report).encode("utf-8", "replace")
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        draft.write_bytes(made)
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def html_of(report: Report) -> str:
    """The text of the file."""
    title = f"Monitoring report of {escape(report.day)}"
    facts = "".join(
        f"<tr><th>{escape(name)}</th><td>{text_of(value)}</td></tr>" for name, value in report.facts.items()
    )
    charts = "".join(_figure(name, report) for name in CHARTS if _has(name, report.timeline))
    tables = "".join(map(_table, report.tables))
    # The policy holds even should escaping fail: no script, no style or picture from elsewhere.
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{title}</h1>
<p class="note">Of the recording {escape(report.recording)}. All times are UTC. Numbers are those of the day: what was
counted from record to record of each object; columns that end in &ldquo;so far&rdquo; count from when it was made.</p>
<div class="scroll"><table>{facts}</table></div>
<div class="charts">{charts}</div>
{tables}</body>
</html>
"""


def text_of(value: Any) -> str:
    """A value as HTML."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    if isinstance(value, datetime):
        return escape(value.isoformat(sep=" ", timespec="seconds"))
    return escape(str(value))


def _table(table: Table) -> str:
    # Numbers of processes and objects are names: they stand as they are, without separators.
    numeric = [
        name not in ("process_id", "object_id") and any(isinstance(row[at], (int, float)) for row in table.rows)
        for at, name in enumerate(table.columns)
    ]

    def cell(at: int, value: Any) -> str:
        text = text_of(str(value) if not numeric[at] and isinstance(value, int) else value)
        return f'<td class="n">{text}</td>' if numeric[at] else f"<td>{text}</td>"

    def head(at: int, name: str) -> str:
        return f'<th class="n">{escape(name)}</th>' if numeric[at] else f"<th>{escape(name)}</th>"

    heads = "".join(head(at, name.replace("_", " ")) for at, name in enumerate(table.columns))
    lines = "".join("<tr>" + "".join(cell(at, value) for at, value in enumerate(row)) + "</tr>\n" for row in table.rows)
    more = f" <b>The first {len(table.rows):,} of {table.total:,}.</b>" if table.total > len(table.rows) else ""
    body = f'<div class="scroll"><table><thead><tr>{heads}</tr></thead>\n<tbody>{lines}</tbody></table></div>'
    said = f'<h2>{escape(table.title)}</h2>\n<p class="note">{escape(table.about)}{more}</p>\n'
    return f"{said}{body if table.rows else '<p>None.</p>'}\n"


# -- charts --


def _has(name: str, timeline: Sequence[Any]) -> bool:
    return any(row[name] for row in timeline)


def _figure(name: str, report: Report) -> str:
    title, unit = CHARTS[name]
    picture = base64.b64encode(draw(name, report.timeline, report.window_seconds)).decode()
    return f'<figure><img alt="{escape(title)}, {escape(unit)}" src="data:image/svg+xml;base64,{picture}"></figure>'


def lines_of(name: str, timeline: Iterable[Any]) -> dict[str, dict[datetime, int]]:
    """For each of the applications that have most of it what a column has at each time; the others together."""
    found: dict[str, dict[datetime, int]] = {}
    for row in timeline:
        found.setdefault(row["application"] or _UNNAMED, {})[row["begin"]] = row[name] or 0
    ranked = sorted(found, key=lambda one: (-sum(found[one].values()), one))
    lines = {one: found[one] for one in ranked[:_APPLICATIONS]}
    rest: dict[datetime, int] = {}
    for one in ranked[_APPLICATIONS:]:
        for begin, value in found[one].items():
            rest[begin] = rest.get(begin, 0) + value
    if rest:
        lines[f"{len(ranked) - _APPLICATIONS} {_OTHERS}"] = rest
    return lines


def draw(name: str, timeline: Sequence[Any], window_seconds: float) -> bytes:
    """A chart of a column of monitoring_timeline(), as SVG. ImportError without matplotlib."""
    from um_cffi.spark.pipelines._plots import pyplot

    plots = pyplot()
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    title, unit = CHARTS[name]
    per = window_seconds if unit.endswith(" a second") else 1.0
    figure, axes = plots.subplots(figsize=(7, 3.2), layout="constrained")
    try:
        for label, values in lines_of(name, timeline).items():
            times = sorted(values)
            # Text of strangers is no formula, and a label that begins with _ would be left out.
            shown = " " + label.replace("$", r"\$") if label.startswith("_") else label.replace("$", r"\$")
            few = "." if len(times) < _FEW else None
            axes.plot(times, [values[at] / per for at in times], marker=few, linewidth=1.2, label=shown[:60])
        axes.set_title(title, fontsize="medium")
        axes.set_ylabel(unit)
        axes.set_ylim(bottom=0)
        places = AutoDateLocator()
        axes.xaxis.set_major_locator(places)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(places))
        axes.tick_params(labelsize="small")
        axes.grid(True, alpha=0.3)
        axes.legend(fontsize="x-small")
        out = io.BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
        return out.getvalue()
    finally:
        plots.close(figure)
