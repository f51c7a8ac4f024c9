"""Pre-defined messages: a definition with numbered fields, one message for many sends, and what a receiver reads."""

from __future__ import annotations

from um_cffi import Context, Receiver, Source
from um_cffi.pdm import Definition, Message, PDMError, Type

definition = Definition(num_fields=3, int_names=True)
definition.id, definition.version = 1001, (1, 0)
flag = definition.add_field(100, Type.BOOLEAN)
number = definition.add_field(101, Type.INT32, required=True)
ratio = definition.add_field(102, Type.FLOAT)
definition.finalize()

sent, received = Message(definition), Message(definition)  # both are used again and again
with Context() as ctx, Receiver(ctx, "fields") as receiver, Source(ctx, "fields") as source:
    source.wait_receivers()
    for i in range(3):
        sent[flag], sent[number], sent[ratio] = i % 2 == 1, 7 * i, i / 2
        source.send(sent.to_bytes())
        received.parse(receiver.recv().data)
        print(received[flag], received.get_int32(number), received.get_float(102))

try:
    Message(definition).to_bytes()
except PDMError as error:
    print("without its required fields:", "REQ_FIELD_NOT_SET" if error.errnum == error.REQ_FIELD_NOT_SET else error)
