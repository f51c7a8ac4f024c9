"""The example program lbmprice: prices, books on request, and relays under hot failover numbers."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable

from hosts import Host

Config = Callable[..., str]
PRICE = r"^ *(\d+) +[\d.]+ +[\d.]+ +[\d.]+  \((?:incompatible|[ \d.]+ s, )"


def test_lbmprice_gives_a_late_receiver_the_book(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    source = host.start("lbmprice", "-c", config, "-s", "-v", "-v")
    receivers = []
    for _ in range(2):  # one after the other: a book that somebody else asked for would do
        receiver = host.start("lbmprice", "-c", config)
        receivers.append(receiver)
        receiver.expect(r"^New price source discovered: TCP:127\.0\.0\.1:\d+")
        receiver.expect(r"^Delaying initial book request by \d+ ms$")
        receiver.expect("^Entering state WAITING.  Sending book request.  Setting request timer.$")
        receiver.expect(r"^Book request was serviced in +[\d.]+ ms\.$")
        receiver.expect(r"^Entering state RCV_READY.  Book \d+ received\.$")
        receiver.expect("^Canceling pending request timer.$")
        receiver.expect(PRICE)
    source.expect(r"^Received \d+ bytes on topic price\.request: '")
    source.expect("^Exiting RATE_LIMIT state with 0 requests pending$")
    source.signal(signal.SIGTERM)
    sent = source.finish()
    for receiver in receivers:
        receiver.expect("^End of transport session from TCP:")
        receiver.signal(signal.SIGTERM)
        got = receiver.finish()
        assert "Book consistency error" not in got
        assert "Should not happen" not in got
        numbers = [int(number) for number in re.findall(PRICE, got, re.MULTILINE)]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    asked = re.findall(r"^(?:Initial book|Book refresh) request from TCP:", sent, re.MULTILINE)
    books, requests = (
        re.findall("^Sending book.$", sent, re.MULTILINE),
        re.findall(r"^Requests:  received (\d+), sent (\d+), squelched \d+, rate limited \d+$", sent, re.MULTILINE),
    )
    assert requests[-1] == (str(len(asked)), str(len(books))) and len(books) >= 2
    assert "Entering SQUELCH state\nEntering RATE_LIMIT state\n" in re.sub(
        "^(Squelched|Initial|Book refresh|Received|Rate limited|Beginning|New).*\n", "", sent, flags=re.MULTILINE
    )


def test_lbmprice_goes_on_when_one_of_two_relays_ends(host: Host, loopback_config: Config) -> None:
    config = loopback_config()
    source = host.start("lbmprice", "-c", config, "-s")
    relays = [host.start("lbmprice", "-c", config, "-s", "-H", "-v") for _ in range(2)]
    receiver = host.start("lbmprice", "-c", config, "-H")
    receiver.expect("^Found our first source.$")
    receiver.expect("^Now know of 2 HF sources.$")
    receiver.expect(r"^Entering state RCV_READY.  Book \d+ received\.$")
    relays[0].expect(r"^Relaying \d+$")
    relays[0].signal(signal.SIGTERM)
    assert "Deleting HF source.\n" in relays[0].finish()
    receiver.expect("^Still have 1 source left.$")
    before = len(re.findall(PRICE, receiver.output, re.MULTILINE))
    receiver.expect_times(PRICE, before + 3)
    source.signal(signal.SIGTERM)
    source.finish()
    relays[1].expect("^End of transport session from ")
    receiver.expect("^Lost our last source.  Deleting receiver & recreating it.$")
    for process in (relays[1], receiver):
        process.signal(signal.SIGTERM)
        process.finish()
    numbers = [int(number) for number in re.findall(PRICE, receiver.output, re.MULTILINE)]
    assert numbers == sorted(set(numbers))


def test_lbmprice_starts_its_book_again_with_a_source_that_was_restarted(host: Host, loopback_config: Config) -> None:
    """One relay does not notice for a while, so that its receivers never are without a source; numbers begin anew."""
    config = loopback_config()
    source = host.start("lbmprice", "-c", config, "-s")
    relays = [host.start("lbmprice", "-c", config, "-s", "-H") for _ in range(2)]
    receiver = host.start("lbmprice", "-c", config, "-H")
    receiver.expect("^Now know of 2 HF sources.$")
    receiver.expect_times(PRICE, 30)
    relays[1].suspend()
    source.signal(signal.SIGTERM)
    source.finish()
    relays[0].expect("^Deleting HF source.$")
    receiver.expect("^Still have 1 source left.$")
    source = host.start("lbmprice", "-c", config, "-s")
    begun = r"^The source (?:behind \S+ )?has begun anew with msg \d+\.$"
    relays[0].expect(begun)
    receiver.expect(begun)
    receiver.expect(rf"{begun}(?s:.*)^Entering state RCV_READY.  Book \d+ received\.$")
    anew = len(re.findall(PRICE, receiver.output, re.MULTILINE))
    receiver.expect_times(PRICE, anew + 3)
    relays[1].signal(signal.SIGCONT)
    relays[1].expect("^End of transport session from ")
    relays[1].expect(begun)
    receiver.expect_times(PRICE, anew + 30)
    for process in (source, *relays, receiver):
        process.signal(signal.SIGTERM)
        process.finish()
    before, after = re.split(begun, receiver.output, maxsplit=1, flags=re.MULTILINE)
    assert "Lost our last source" not in before
    old, new = ([int(number) for number in re.findall(PRICE, part, re.MULTILINE)] for part in (before, after))
    assert new[0] < old[-1]
    assert old == sorted(set(old)) and new == sorted(new)
    assert "Book consistency error" not in receiver.output


def test_lbmprice_refuses_what_it_cannot_do(host: Host) -> None:
    assert host.start("lbmprice", "-o", 7).wait() == 1
    assert host.start("lbmprice", "-l", 101).wait() == 1
