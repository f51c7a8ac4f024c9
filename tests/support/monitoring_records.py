"""Monitoring records for tests: one of each kind, and strategies that make any."""

from __future__ import annotations

from hypothesis import strategies as st

from um_cffi.monitoring import (
    Attributes,
    ContextRecord,
    EventQueueRecord,
    ReceiverRecord,
    Record,
    SourceRecord,
    TopicRecord,
    TopicState,
    WildcardRecord,
)
from um_cffi.monitoring._fields import CONTEXT, EVENT_QUEUE, RECEIVERS, SOURCES
from um_cffi.monitoring._pb import SESSIONS

NUMBER = st.integers(0, 2**64 - 1)
# Quotes and commas within a text cannot be told from its end in csv.
TEXT = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters='"', max_codepoint=0x3FFF), max_size=40)
ATTRIBUTES = st.builds(
    Attributes,
    host=st.sampled_from(("", "10.1.2.3", "127.0.0.1")),
    timestamp=st.integers(0, 2**32 - 1),
    application=TEXT,
    object_id=NUMBER,
    process_id=NUMBER,
    immediate=st.booleans(),
    context_instance=st.sampled_from(("", "00112233445566ff")),
    domain_id=st.integers(0, 2**32 - 1),
)
STATES = st.builds(
    TopicState, source=TEXT, otid=st.sampled_from(("0" * 64, "ab" * 32)), topic_index=st.integers(0, 2**32 - 1)
)


def numbers(names: tuple[str, ...]) -> st.SearchStrategy[dict[str, int]]:
    return st.fixed_dictionaries(dict.fromkeys(names, NUMBER))


def of_transport(kind: type[SourceRecord] | type[ReceiverRecord], transport: str) -> st.SearchStrategy[Record]:
    shape = (SOURCES if kind is SourceRecord else RECEIVERS)[transport]
    return st.builds(kind, ATTRIBUTES, st.just(transport), TEXT, numbers(shape.csv))


def records(transports: tuple[str, ...]) -> st.SearchStrategy[Record]:
    """Records of every kind, of sessions of these transports."""
    return st.one_of(
        *(of_transport(kind, each) for kind in (SourceRecord, ReceiverRecord) for each in transports),
        st.builds(ContextRecord, ATTRIBUTES, numbers(CONTEXT.csv)),
        st.builds(EventQueueRecord, ATTRIBUTES, numbers(EVENT_QUEUE.csv)),
        st.builds(TopicRecord, ATTRIBUTES, TEXT, st.lists(STATES, max_size=4).map(tuple)),
        st.builds(WildcardRecord, ATTRIBUTES, TEXT, st.sampled_from(("pcre", "regex"))),
    )


WHO = Attributes("10.1.2.3", 1_700_000_000, "orders", 77, 4242, False, "00112233445566ff", 5)
SESSION = "LBTRM:10.1.1.5:14400:a1b2c3d4:224.1.1.1:14400"


def one_of_each() -> list[Record]:
    """A record of each kind, and of each transport that both formats have."""
    found: list[Record] = []
    for transport in SESSIONS:
        for kind, shapes in ((SourceRecord, SOURCES), (ReceiverRecord, RECEIVERS)):
            values = {name: 1000 + at for at, name in enumerate(shapes[transport].csv)}
            if "reserved1" in values:
                values["reserved1"] = 0  # protobuf does not have it
            found.append(kind(WHO, transport, SESSION, values))
    found.append(ContextRecord(WHO, {name: at for at, name in enumerate(CONTEXT.csv)}))
    found.append(EventQueueRecord(WHO, {name: at for at, name in enumerate(EVENT_QUEUE.csv)}))
    found.append(
        TopicRecord(WHO, "prices, trades", (TopicState(SESSION, "0f" * 32, 9), TopicState("TCP:x", "00" * 32)))
    )
    found.append(WildcardRecord(WHO, "a.*b", "regex"))
    return found
