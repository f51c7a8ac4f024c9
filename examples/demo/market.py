"""What publishers and subscribers of the demo agree on: topics, the payload, and the prices that are replayed."""

from __future__ import annotations

import csv
import struct
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

import numpy

if TYPE_CHECKING:
    from um_cffi.pdm import Definition

PREFIX = "Market/US/SP500/"
PATTERN = "^Market/US/.*$"

_PAYLOAD = struct.Struct("<QId12s")
TICK = numpy.dtype([("sent_ns", "<u8"), ("number", "<u4"), ("price", "<f8"), ("date", "S12")])  # the same, for numpy
SENT = "sent"  # message property with the time of sending, for the recorder
BINS_US = numpy.logspace(1, 6, 76)  # edges of the latency histogram: 10 us to 1 s, 15 bins for each power of ten


class Tick(NamedTuple):
    sent_ns: int  # CLOCK_MONOTONIC: both ends are on one machine
    number: int  # counts from 0 for each symbol
    price: float
    date: str


def pack(tick: Tick) -> bytes:
    return _PAYLOAD.pack(tick.sent_ns, tick.number, tick.price, tick.date.encode())


def unpack(data: bytes | memoryview) -> Tick:
    sent_ns, number, price, date = _PAYLOAD.unpack(data)
    return Tick(sent_ns, number, price, date.rstrip(b"\0").decode())


def definition() -> Definition:
    """A tick as a pre-defined message, which Spark reads as columns."""
    from um_cffi import pdm

    return pdm.Definition.from_schema({"price": "DOUBLE", "size": "INT64", "date": "FIX_STRING(12)"}, id=500)


def topic(symbol: str) -> str:
    return PREFIX + symbol


def prices() -> dict[str, list[tuple[str, float]]]:
    """Monthly closing prices by symbol, as shipped in the package vega_datasets."""
    result: dict[str, list[tuple[str, float]]] = {}
    text = resources.files("vega_datasets").joinpath("_data", "stocks.csv").read_text()
    for row in csv.DictReader(text.splitlines()):
        result.setdefault(row["symbol"], []).append((row["date"], float(row["price"])))
    return result
