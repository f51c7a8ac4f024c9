"""Immediate messages: to one context, with a topic and without, and a request that is answered; by multicast to all."""

from __future__ import annotations

from um_cffi import Context, ImmediateReceiver, Message, Receiver

HANG = 30  # seconds


def answer(message: Message) -> None:
    message.respond(bytes(message).upper(), timeout=HANG)


with (
    Context() as sender,
    Context(mim_address="224.10.10.21") as receiver,
    Receiver(receiver, "orders") as orders,
    ImmediateReceiver(receiver, answer),
):
    print("target:", receiver.immediate_target.partition(":")[0])
    sender.send_immediate(receiver, b"unicast", "orders")
    print("received:", [bytes(message) for message in [orders.recv(timeout=HANG)] if message])
    print("answered:", sender.request_immediate(receiver, b"hello", timeout=HANG).result().data)
    sender.send_multicast(b"to everybody", "orders")
    print("received:", [bytes(message) for message in [orders.recv(timeout=HANG)] if message])
