"""Pre-defined messages: strings, arrays and a field that is not set; a receiver that iterates over all of them."""

from __future__ import annotations

from um_cffi import Context, Receiver, Source
from um_cffi.pdm import Definition, Message, Type

definition = Definition(num_fields=9, int_names=True, id=1002, version=(1, 0))
definition.add_field(100, Type.BOOLEAN, required=True)
definition.add_field(101, Type.INT32, required=True)
definition.add_field(102, Type.FLOAT, required=True)
definition.add_field(103, Type.INT8, required=False)
definition.add_field(104, Type.FIX_STRING, fixed_str_len=12)
definition.add_field(105, Type.STRING)
definition.add_field(106, Type.BOOLEAN_ARR, num_arr_elem=3)
definition.add_field(107, Type.INT32_ARR, required=False)
definition.add_field(108, Type.FIX_STRING_ARR, fixed_str_len=5, num_arr_elem=2)
definition.finalize()

message = Message(definition)
message[100], message[101], message[102] = True, 7, 3.5
message[104], message[105] = "Hello World!", "variable length value"
message[106], message[107] = [True, False, True], [1, 2, 3, 4, 5]
message[108] = ["aaaaa", "bbbbb"]

with Context() as ctx, Receiver(ctx, "iterate") as receiver, Source(ctx, "iterate") as source:
    source.wait_receivers()
    source.send(message.to_bytes())
    for field in definition.parse(receiver.recv().data):
        print(field.name, field.type.name, "set" if field.is_set else "not set", field.value)
