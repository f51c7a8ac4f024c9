"""Pre-defined messages that bring their definition: a receiver that knows nothing reads them, nested ones included."""

from __future__ import annotations

from um_cffi import Context, Receiver, Source
from um_cffi.pdm import Decimal, Definition, Message, Timestamp

legs = Definition.from_schema({"symbol": "FIX_STRING(8)", "ratio": "INT32"}, id=2002)
order = Definition.from_schema(
    {"id": "INT64", "limit": "DECIMAL", "time": "TIMESTAMP", "leg": "MESSAGE", "note": "UNICODE?", "raw": "BLOB"},
    id=2003,
)
leg = legs.message(symbol="IBM", ratio=2)
leg.include_definition = True
message = order.message(id=1, limit=Decimal(19150, -2), time=Timestamp(1700000000, 250000), leg=leg, raw=b"\x00\x01")
message.include_definition = True

with Context() as ctx, Receiver(ctx, "orders") as receiver, Source(ctx, "orders") as source:
    source.wait_receivers()
    source.send(message.to_bytes())
    found = Message()
    found.parse(receiver.recv().data)

assert found.definition == order
print("definition", order.id, "version", order.version)
print(found["id"], found["limit"].to_decimal(), found["time"].to_datetime().isoformat(), found.get("note", "no note"))
print(found["leg"]["symbol"], found["leg"]["ratio"], found["raw"])
