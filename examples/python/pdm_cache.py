"""Pre-defined messages without their definition: the receiver's cache has it, in the version that was sent."""

from __future__ import annotations

from um_cffi import Context, Receiver, Source
from um_cffi.pdm import Definition, Message, PDMError, cache

first = Definition.from_schema({"price": "DOUBLE"}, id=2001, version=(1, 0))
second = Definition.from_schema({"price": "DOUBLE", "venue": "STRING?"}, id=2001, version=(1, 1))
cache.put(first)
cache.put(second)

with Context() as ctx, Receiver(ctx, "cached") as receiver, Source(ctx, "cached") as source:
    source.wait_receivers()
    source.send(first.message(price=191.5).to_bytes())
    source.send(second.message(price=191.75, venue="XNYS").to_bytes())
    for _ in range(2):
        message, data = Message(), receiver.recv().data
        try:
            message.parse(data)
        except PDMError as error:
            print("without the cache:", "DEFN_INVALID" if error.errnum == error.DEFN_INVALID else error)
        message.try_load_def_from_cache = True
        message.parse(data)
        assert message.definition is not None
        print(message.definition.version, message.to_dict())

cache.remove(2001, 1, 0)
print("version 1.0:", cache.get(2001, 1, 0), "- the newest:", cache.get(2001) == second)
