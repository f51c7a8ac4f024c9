"""One topic, several kinds of messages: channels that receivers choose from, and properties beside the payload."""

from __future__ import annotations

from um_cffi import Context, Message, Properties, Receiver, Source

TRADES, QUOTES = 1, 2
HOUSE = Properties({"venue": "XNYS", "test": False})  # made once for many messages


def show(name: str, message: Message | None) -> None:
    assert message is not None, "ten seconds without a message"
    print(f"{name}: channel {message.channel}, {bytes(message).decode()}, {dict(message.properties)}")


with Context() as sending, Context() as receiving, Context() as elsewhere:
    everything = Receiver(receiving, "market", channels=[TRADES, QUOTES])
    trades = Receiver(elsewhere, "market", channels=[TRADES], unrecognized_channel_behavior="discard")
    source = Source(sending, "market")
    source.wait_receivers(2)
    source.send(b"191.40 191.45", channel=QUOTES, properties=HOUSE)
    source.send(b"191.42", channel=TRADES, properties={"size": 300, "aggressor": "buy"}, flush=True)
    show("everything", everything.recv(10))
    show("everything", everything.recv(10))
    show("trades only", trades.recv(10))
