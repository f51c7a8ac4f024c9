"""Columns of a million pre-defined messages: each form decoded and encoded, beside a memcpy of the messages and a loop
over single ones. One thread, nothing is sent. Some 30 s:

    UM_BUILD_DIR=build PYTHONPATH=. .venv/bin/python benchmarks/encodings_columns.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from um_cffi import pdm

COUNT = 1_000_000
ROUNDS = 5
SINGLE = 2000  # messages of the loop
NUMBERS = ("INT64", "DOUBLE", "INT32")


def seconds(call: Callable[[], object]) -> float:
    """The fastest of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def loop(definition: pdm.Definition, messages: pdm.Encoded) -> float:
    """Seconds of a loop that parses each message and reads its fields, for COUNT messages."""
    message = definition.message()
    names = [field.name for field in definition]
    data = [bytes(messages[at]) for at in range(SINGLE)]

    def run() -> None:
        for one in data:
            message.parse(one)
            for name in names:
                message[name]

    return seconds(run) * COUNT / SINGLE


def row(name: str, definition: pdm.Definition, columns: dict[str, Any], count: int = COUNT) -> None:
    """Prints one form: milliseconds of a memcpy, of decoding and of encoding, and how many times the loop takes."""
    made = definition.encode_many(columns)
    target = np.empty_like(made.data)
    copied = seconds(lambda: np.copyto(target, made.data))
    fixed = all(field.fixed_required for field in definition)
    room = np.zeros(count, definition.dtype if fixed else np.uint8)  # as `target`: memory that was used before
    if fixed:
        definition.decode_many(made)  # malloc() gives memory back to the system until something as large was freed
    array = seconds(lambda: definition.decode_many(made, out=room)) if fixed else None
    arrow = seconds(lambda: definition.decode_columns(made).__arrow_c_array__())
    encoded = seconds(lambda: definition.encode_many(columns))
    single = loop(definition, made) * count / COUNT
    shown = f"{array * 1e3:.1f} ({array / copied:.1f})" if array is not None else "-"
    print(
        f"| {name} | {count} | {len(made.data) // count} | {copied * 1e3:.1f} | {shown} | "
        f"{arrow * 1e3:.1f} ({arrow / copied:.1f}) | {encoded * 1e3:.1f} | {single / arrow:.0f} |"
    )


def main() -> None:
    times = "array ms (memcpies) | columns ms (memcpies)"
    print(f"| messages | count | bytes | memcpy ms | {times} | encode ms | loop / columns |")
    print("|---|---|---|---|---|---|---|---|")
    kinds = {"INT64": np.int64, "DOUBLE": np.float64, "INT32": np.int32}
    for fields, count in ((3, COUNT), (12, COUNT // 2), (48, COUNT // 8)):
        schema = {f"f{at}": NUMBERS[at % 3] for at in range(fields)}
        columns = {name: np.zeros(count, kinds[kind]) for name, kind in schema.items()}
        row(f"{fields} numbers", pdm.Definition.from_schema(schema, id=7), columns, count)
    three: dict[str, Any] = {"a": np.arange(COUNT), "b": np.zeros(COUNT), "c": np.zeros(COUNT, np.int32)}
    optional = pdm.Definition.from_schema({"a": "INT64?", "b": "DOUBLE?", "c": "INT32?"}, id=7)
    row("3 optional numbers", optional, three)
    variable = pdm.Definition.from_schema({"a": "STRING", "b": "UNICODE?", "c": "BLOB?"}, id=7)
    texts = {name: np.full(COUNT, b"some text") for name in "abc"}
    row("3 texts", variable, dict(variable.decode_columns(variable.encode_many(texts))))


if __name__ == "__main__":
    main()
