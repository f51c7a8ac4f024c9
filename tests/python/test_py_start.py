"""What a program has to read before it starts: modules that only some need are left until they are asked for."""

from __future__ import annotations

from interpreter import printed
from pairs import run_python

PLAIN = """
import sys
from um_cffi import Context, Receiver, Source
names = []
with Context(default_interface="127.0.0.1", operational_mode="embedded") as ctx:
    with Source(ctx, "x", transport="lbtipc") as source, Receiver(ctx, "x", on_message=names.append, direct=True):
        source.wait_receivers(timeout=600)
        source.send(b"x", flush=True, channel=7, properties={"of": "python", "count": 1})
        source.send_many([b"y", b"z"], flush=True)
        with Receiver(ctx, "x") as receiver:
            assert receiver.recv(timeout=0) is None
print(*sorted({"asyncio", "difflib", "json", "numpy", "pyarrow", "subprocess", "um_cffi.stats"} & set(sys.modules)))
"""
BATCHES = """
import sys
import um_cffi
with um_cffi.Context(default_interface="127.0.0.1", operational_mode="embedded") as ctx:
    with um_cffi.Receiver(ctx, "x") as receiver:
        assert "numpy" not in sys.modules
        assert receiver.recv_batch(timeout=0) is None
        assert "numpy" in sys.modules, "read when the first message is there: it would wait"
assert um_cffi.stats.TopicSource is um_cffi.TopicSource and um_cffi.object_counts().contexts == 0
assert um_cffi.RECORD is um_cffi.RECORD and um_cffi.RECORD.names[0] == "offset"
from um_cffi import *
assert RECORD.itemsize == 40
try:
    um_cffi.RECORDS
except AttributeError as error:
    print(error)
"""


def test_single_messages_need_neither_numpy_nor_asyncio_nor_statistics() -> None:
    assert printed(run_python(PLAIN)) == [""]


def test_numpy_is_read_by_the_first_call_for_a_batch_before_it_waits() -> None:
    assert printed(run_python(BATCHES)) == ["module 'um_cffi' has no attribute 'RECORDS'"]


def test_the_list_of_all_commands_needs_neither_numpy_nor_asyncio() -> None:
    code = (
        "import sys\nfrom um_cffi.commands import parser\nparser()\n"
        "print(*sorted({'asyncio', 'numpy', 'pyarrow', 'um_cffi.monitoring'} & set(sys.modules)))"
    )
    assert printed(run_python(code)) == [""]
