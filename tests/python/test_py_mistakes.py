"""Every mistake of a caller is answered by a UmError that names the call or option, the value and the remedy."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pairs import HANG, loopback

from um_cffi import (
    XSP,
    Batch,
    Context,
    EventQueue,
    MessageType,
    Receiver,
    Source,
    SourceEventType,
    UmError,
    WildcardReceiver,
    config,
)
from um_cffi.testing import set_loss_rate


class World:
    """Something of each kind; everything is of type Any, because what follows are the mistakes that mypy finds."""

    def __init__(self, stack: ExitStack) -> None:
        self.context: Any = stack.enter_context(loopback(context_name="world"))
        self.source: Any = stack.enter_context(Source(self.context, "topic"))
        self.receiver: Any = stack.enter_context(Receiver(self.context, "topic"))
        self.shared: Any = stack.enter_context(Source(self.context, "shared", transport="lbtsmx"))
        self.queue: Any = stack.enter_context(EventQueue())


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with ExitStack() as stack:
        yield World(stack)


Make: Any = Source  # constructors without types
MakeReceiver: Any = Receiver
MakeWildcard: Any = WildcardReceiver
MakeContext: Any = Context
MakeXsp: Any = XSP
set_any_loss_rate: Any = set_loss_rate

MISTAKES: list[tuple[str, Callable[[World], object]]] = [
    (r"context option default_interface 'lo'.*device in double quotes", lambda w: MakeContext(default_interface="lo")),
    (r"default_interface '10\.99\.99\.99'.*a\.b\.c\.d/bits", lambda w: MakeContext(default_interface="10.99.99.99")),
    (r"Source\(ctx, topic\): 'topic' is not a Context, which is the first", lambda w: Make("topic", w.context)),
    (r"Receiver\(ctx, topic\): 'topic' is not a Context", lambda w: MakeReceiver("topic", w.context)),
    (r"WildcardReceiver\(ctx, pattern\): 'x' is not a Context", lambda w: MakeWildcard("x", w.context)),
    (r"XSP\(ctx, sources\): 'x' is not a Context", lambda w: MakeXsp("x")),
    (r"topic b'topic' is bytes: give a str", lambda w: Make(w.context, b"topic")),
    (r"topic b'topic' is bytes: give a str", lambda w: MakeReceiver(w.context, b"topic")),
    (r"pattern b'x' is bytes: give a str", lambda w: MakeWildcard(w.context, b"x")),
    (r"topic 5 is of type int", lambda w: Make(w.context, 5)),
    (r"topic 'a\\x00b' contains a NUL character", lambda w: Make(w.context, "a\0b")),
    (r"topic 'a\\x00b' contains a NUL character", lambda w: MakeReceiver(w.context, "a\0b")),
    (r"pattern 'a\\x00b' contains a NUL character", lambda w: MakeWildcard(w.context, "a\0b")),
    (r"sources 'a\\x00b' contains a NUL character", lambda w: MakeXsp(w.context, "a\0b")),
    (r"topic '\\ud800' cannot be written in UTF-8", lambda w: Make(w.context, "\ud800")),
    (r"context_name 'a\\x00b': contains a NUL", lambda w: MakeContext(context_name="a\0b")),
    (r"context_name '\\ud800': cannot be written", lambda w: MakeContext(context_name="\ud800")),
    (r"name 'a\\x00b' contains a NUL", lambda w: w.context.getopt("a\0b")),
    (r"transport: b'tcp' is bytes: give a str", lambda w: Make(w.context, "t", options={"transport": b"tcp"})),
    (r"transport: \['tcp'\] is of type list", lambda w: Make(w.context, "t", options={"transport": ["tcp"]})),
    (r"did you mean transport", lambda w: Make(w.context, "t", transprt="tcp")),
    (r"did you mean .*the source option transport\?", lambda w: MakeContext(transprt="tcp")),
    (r"did you mean transport\?", lambda w: w.source.getopt("transprt")),
    (r"did you mean ordered_delivery\?", lambda w: w.receiver.getopt("ordered_deliveri")),
    (r"it is an option of scope source", lambda w: w.context.getopt("transport_tcp_nodelay")),
    (r"name b'x' is bytes", lambda w: w.context.getopt(b"x")),
    (r"name 5 is of type int", lambda w: w.context.setopt(5, 1)),
    (r"on_event is 'call', which cannot be called", lambda w: Make(w.context, "t", "call")),
    (r"queue 5: give an EventQueue", lambda w: Make(w.context, "t", print, 5)),
    (r"queue 5: give an EventQueue", lambda w: MakeReceiver(w.context, "t", print, None, 5)),
    (r"options \[1\] is of type list: give a mapping", lambda w: MakeContext(options=[1])),
    (r"option 1 is of type int: give a str", lambda w: MakeContext({1: 2})),
    (r"Context\(\): 5 is of type int: give the name of a file", lambda w: MakeContext(5)),
    (r"send\(\) of the str 'text': messages are bytes; give text\.encode\(\)", lambda w: w.source.send("text")),
    (r"send\(\) of the str 'text'", lambda w: w.source.send([b"head", "text"])),
    (r"send\(\) of the str 'text'", lambda w: w.source.send_nowait("text")),
    (r"send\(\) of None, of type NoneType", lambda w: w.source.send(None)),
    (r"send_many\(\) of 'text': give messages, as a list", lambda w: w.source.send_many("text")),
    (r"send_many\(\) of b'text': give messages, as a list", lambda w: w.source.send_many(b"text")),
    (r"send_many\(\) of None", lambda w: w.source.send_many(None)),
    (r"send\(\) of the str 'text'", lambda w: w.source.send_many([b"x", "text"])),
    (r"receivers 'x': must be a whole number", lambda w: w.source.wait_receivers("x")),
    (r"receivers -1: must be 0 or more", lambda w: w.source.wait_receivers(-1)),
    (r"timeout 'x': must be a number", lambda w: w.source.wait_receivers(1, "x")),
    (r"timeout nan: must be", lambda w: w.source.wait_receivers(1, float("nan"))),
    (r"sources 'x': must be a whole number", lambda w: w.receiver.wait_ready("x")),
    (r"timeout 'x': must be a number", lambda w: w.receiver.recv_batch(timeout="x")),
    (r"max_messages 'x': must be a whole number", lambda w: w.receiver.recv_batch(max_messages="x")),
    (r"queue_bytes 'x': must be a number", lambda w: MakeReceiver(w.context, "t", queue_bytes="x")),
    (r"queue_bytes inf: must be 1 or more, below", lambda w: MakeReceiver(w.context, "t", queue_bytes=float("inf"))),
    (r"on_full \['pause'\]: must be 'pause' or", lambda w: MakeReceiver(w.context, "t", on_full=["pause"])),
    (r"arrow_reader\(\): dtype 'nonsense'", lambda w: w.receiver.arrow_reader("nonsense")),
    (r"decode\(\): dtype 'nonsense'", lambda w: Batch(w.receiver._intake.empty()).decode("nonsense")),
    (r"send_many\(\): dtype 'nonsense'", lambda w: w.source.send_many([], dtype="nonsense")),
    (r"loss rate of lbtrm 'x': must be a whole number", lambda w: set_any_loss_rate(lbtrm="x")),
    (r"source 5 is of type int", lambda w: w.receiver.counts(source=5)),
    (r"slot\(\) of a size 'x': must be a whole number", lambda w: w.shared.slot("x")),
    (r"acquire\(\) of 2\.5 bytes: must be a whole number", lambda w: w.shared.acquire(2.5)),
    (r"acquire\(\) of 'x' bytes: must be a whole number", lambda w: w.shared.slot(1).acquire("x")),
    (r"9223372036854775807", lambda w: w.shared.acquire(10**30)),
    (r"acquire_rows\(\): dtype 'nonsense'", lambda w: w.shared.acquire_rows(1, "nonsense")),
    (r"acquire_rows\(\) of a count 'x'", lambda w: w.shared.acquire_rows("x", "u1")),
    (r"timer 'x': must be a number", lambda w: w.context.call_later("x", lambda: None)),
    (r"call_later\(\).*call is None, which cannot be called", lambda w: w.context.call_later(1, None)),
    (r"call_every\(\).*call is None, which cannot be called", lambda w: w.queue.call_every(1, None)),
    (r"'x' is neither an open descriptor", lambda w: w.context.add_reader("x", print)),
    (r"descriptor -1: must be 0 or more", lambda w: w.context.add_reader(-1, print)),
    (r"add_reader\(\).*call is None, which cannot be called", lambda w: w.context.add_reader(0, None)),
    (r"timeout 'x': must be a number", lambda w: w.queue.dispatch("x")),
    (r"config\.load\(\): 5 is of type int: give the name", lambda w: config.load(5)),  # type: ignore[arg-type]
    (r"the name of the file .* contains a NUL", lambda w: config.load("/tmp/a\0b")),
    (r"config\.validate\(\): 5 is of type int", lambda w: config.validate(5)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("pattern", "mistake"), MISTAKES, ids=[pattern for pattern, _ in MISTAKES])
def test_a_mistake_is_a_um_error_with_call_value_and_remedy(
    world: World, pattern: str, mistake: Callable[[World], object]
) -> None:
    with warnings.catch_warnings(), pytest.raises(UmError, match=pattern):
        warnings.simplefilter("error", ResourceWarning)
        mistake(world)


def test_a_regular_file_cannot_be_watched(world: World, tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file, pytest.raises(UmError, match=r"cannot be watched: .*sockets and pipes"):
        world.context.add_reader(file, print)


def test_validate_tells_all_problems_with_file_line_option_and_value(tmp_path: Path) -> None:
    path = tmp_path / "um.cfg"
    path.write_text(
        "contxt default_interface 127.0.0.1\ncontext default_interfac 127.0.0.1\n\ncontext request_tcp_port_low abc\n"
        "source transport udp # no\nreceiver transport_tcp_port_low 5\nsource late_join\n"
        'context default_interface "lo"\n'
    )
    found = config.validate(path)
    assert [(each.line, each.scope, each.option, each.value) for each in found] == [
        (1, "contxt", "default_interface", "127.0.0.1"),
        (2, "context", "default_interfac", "127.0.0.1"),
        (4, "context", "request_tcp_port_low", "abc"),
        (5, "source", "transport", "udp"),
        (6, "receiver", "transport_tcp_port_low", "5"),
        (7, "source", "", ""),
    ]
    assert all(each.file == str(path) and str(each).startswith(f"{path}:{each.line}: ") for each in found)
    words = ("did you mean context?", "did you mean default_interface", "not numeric", "one of tcp", "context option")
    assert all(word in each.text for word, each in zip(words, found))


def test_validate_tells_all_problems_of_xml_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "um.xml"
    path.write_text(
        '<?xml version="1.0" encoding="UTF-8" ?>\n<um-configuration version="1.0"><applications>'
        '<application name="a">\n<contexts><context><options type="context">\n'
        '<option name="request_tcp_prot_low" default-value="13000"/>\n'
        '<option name="request_tcp_port_high" default-value="x"/></options>\n<sources><topic topicname="t">'
        '<options type="source">\n<option name="transport" default-value="udp"/></options></topic></sources>\n'
        "</context></contexts></application></applications></um-configuration>\n"
    )
    found = config.validate(path, "a")
    assert [(each.line, each.scope, each.option, each.value) for each in found] == [
        (4, "context", "request_tcp_prot_low", "13000"),
        (5, "context", "request_tcp_port_high", "x"),
        (7, "source", "transport", "udp"),
    ]
    path.write_text('<um-configuration version="1.0">\n<applications>\n')
    assert [each.line for each in config.validate(path, "a")] == [3]


def test_repr_tells_name_transport_and_counts() -> None:
    with loopback(context_name="shown") as ctx:
        source, receiver = Source(ctx, "shown"), Receiver(ctx, "shown")  # no other test has sources of it
        matching, quiet = WildcardReceiver(ctx, "^sho"), Source(ctx, "quiet", transport="lbtrm")
        source.wait_receivers(1, HANG)
        receiver.wait_ready(1, HANG)
        assert re.fullmatch(r"<um_cffi source of shown, tcp, [12] receivers?>", repr(source))
        assert repr(receiver) == "<um_cffi receiver of shown, 1 source>"
        assert repr(matching).startswith("<um_cffi wildcard receiver of ^sho, ")
        assert repr(quiet) == "<um_cffi source of quiet, lbtrm>"
        assert repr(ctx) == "<um_cffi context, 'shown', 2 sources, 2 receivers>"
    assert repr(source) == "<um_cffi source of shown (closed)>"


def test_every_type_of_event_has_a_name() -> None:
    assert MessageType(MessageType.DATA).name == "DATA"
    assert MessageType(4711).name == "OTHER_4711" and MessageType(4711) == 4711
    assert SourceEventType(-5).name == "OTHER_MINUS_5"
    with pytest.raises(ValueError):
        MessageType("x")  # type: ignore[arg-type]


logging.getLogger("um_cffi").setLevel(logging.CRITICAL)
