"""Every option that acts has a row in the tables that prove that it reaches what it rules (F25)."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import mutate_options  # noqa: E402


def test_f25_every_acting_option_has_a_row() -> None:
    options = mutate_options.acting_options()
    assert len(options) > 200
    rows = mutate_options.rows()
    assert len(rows) == len({key for key, _ in rows}), "an option has two rows"
    assert sorted(option.key for option in options) == sorted(key for key, _ in rows)


def test_f25_every_acting_option_is_read(tmp_path: Path) -> None:
    options = mutate_options.acting_options()
    read = mutate_options.make_tree(tmp_path / "tree", options)
    assert [o.key for o in options if o.name not in read and not o.writes] == []
    mutate_options.configure(tmp_path)  # the long run builds it, and would be the first to find that it cannot


def test_f25_reads_of_options_are_found_in_every_form() -> None:
    names = {"port", "size"}
    for text, changed in (
        ("a = opts->port;", "a = UM_OPTION_READ(*(opts), port);"),
        ("f(&ctx->opts.port, 1)", "f(&UM_OPTION_READ(ctx->opts, port), 1)"),
        ("of(it)->opts.size.count", "UM_OPTION_READ(of(it)->opts, size).count"),
        ("return ((struct a *)b)->size;", "return UM_OPTION_READ(*(((struct a *)b)), size);"),
        ("x[1].e[i]->port == 2", "UM_OPTION_READ(*(x[1].e[i]), port) == 2"),
        ("{(o)->name##_low, 1}", "{UM_OPTION_READ(*((o)), name##_low), 1}"),
        ("f((o)->um_##name##_us)", "f(UM_OPTION_READ(*((o)), um_##name##_us))"),
        ("if (a) b = c->port;", "if (a) b = UM_OPTION_READ(*(c), port);"),
    ):
        assert mutate_options.changed_reads(text, names)[0] == changed
    for text in ("opts->port = 1;", "{.port = 1, .size = 2}", "o->size.count = 0;", "/* opts->port */", '"o->port"'):
        assert mutate_options.changed_reads(text, names) == (text, [])
