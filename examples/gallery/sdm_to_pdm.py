"""From self-describing to pre-defined messages: a definition made of a message, and its values carried over."""

from um_cffi import Context, Receiver, Source, pdm
from um_cffi.sdm import SDMField, SDMMessage, SDMType

quote = SDMMessage()
quote.add("Field100", 0x42, SDMType.INT8)
quote.add("Field101", 0x1EAD, SDMType.INT16)
quote.add("Field102", 12345, SDMType.INT32)
quote.add("sizes", [100, 200], SDMType.INT32)
quote.add("note", None, SDMType.STRING)


def spec(field: SDMField) -> str:
    """The types have the same names; what may be null is optional."""
    return field.type.name + ("[]" if field.is_array else "") + ("?" if field.is_null else "")


definition = pdm.Definition.from_schema(
    {field.name: spec(field) for field in quote}, id=100
)  # once: both sides have it
message = definition.message(**{field.name: field.value for field in quote})

with Context() as ctx, Receiver(ctx, "quotes") as receiver, Source(ctx, "quotes") as source:
    source.wait_receivers()
    source.send(quote.to_bytes())
    source.send(message.to_bytes())
    old, new = receiver.recv(), receiver.recv()
    print("SDM", [field.value for field in SDMMessage.parse(old.data)], len(old.data), "bytes")
    print("PDM", [field.value for field in definition.parse(new.data)], len(new.data), "bytes")
