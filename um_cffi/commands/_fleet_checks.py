"""The checks of `um doctor --fleet`: what monitoring records tell of a fleet's troubles, and what helps.

Each takes what was watched and gives rows of (name, state, text, remedy). Records have numbers and no options, so an
option is named only where a number follows from it. Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from um_cffi.commands._fleet_watch import Watched
from um_cffi.monitoring.fleet import MonitoredObject, session_of

Row = tuple[str, str, str, str]
NAMED = 4  # objects that a row names; the rest is counted
ALONE = 10  # times as many losses as others: it loses alone
IGNORED_SHARE = 0.1  # of the NAKs
QUEUE_LONG = 100  # events
BUFFERED_MANY = 65_536  # bytes
CALLBACK_LONG = 100_000  # microseconds: the context does nothing else meanwhile
STRANGE_MANY = 100.0  # datagrams a second of sessions that nobody here wants
RELIABLE = ("lbtrm", "lbtru")
WAITS = ("send_blocked", "send_would_block", "resp_blocked", "resp_would_block")
FOREIGN = ("dgrams_dropped_type", "dgrams_dropped_version", "dgrams_dropped_hdr", "dgrams_dropped_other")


def who(each: MonitoredObject) -> str:
    """Where an object is, for people."""
    name = f" {each.application}" if each.application else ""
    return f"{each.host or 'a host'}{name} (process {each.process_id})"


def listed(texts: Iterable[str]) -> str:
    """Some of the texts, and how many there are more."""
    all_ = list(texts)
    more = f"; and {len(all_) - NAMED} more" if len(all_) > NAMED else ""
    return "; ".join(all_[:NAMED]) + more


def about(watched: Watched, each: MonitoredObject) -> str:
    """The session of an object, with its topics where they are known."""
    topics = watched.fleet.topics(each)
    return session_of(each.source) + (
        f" ({', '.join(topics[:3])}{', ...' if len(topics) > 3 else ''})" if topics else ""
    )


def _judged(name: str, state: str, troubles: list[str], good: str, remedy: str) -> Row:
    return (name, state, listed(troubles), remedy) if troubles else (name, "ok", good, "")


# ---- who speaks ------------------------------------------------------------------------------------------------------


def records(watched: Watched) -> list[Row]:
    """Something comes, from whom, and whether it can be read."""
    fleet, counts = watched.fleet, watched.counts
    if not len(fleet):
        text = f"no monitoring record has come in {watched.seconds:.0f} s"
        remedy = (
            "set `context monitor_interval 5` (seconds), or LBM_MONITOR_INTERVAL=5, for the processes to be watched;"
            " look with the configuration (-c), or the --udp, that they send with; um doctor tells whether topics are"
            " found here"
        )
        return [("records", "FAIL", text, remedy)]
    hosts = len({each.host for each in fleet.processes()})
    told = fleet.summary()
    text = (
        f"{counts.records} records of {told['processes']} processes on {hosts} hosts: {told['contexts']} contexts,"
        f" {told['sources']} sources, {told['receivers']} receivers, {told['event_queues']} event queues"
    )
    rows: list[Row] = [("records", "ok", text, "")]
    if malformed := sum(counts.malformed.values()):
        reasons = ", ".join(f"{number} {reason}" for reason, number in counts.malformed.items())
        text = f"{malformed} packets are no monitoring records: {reasons}"
        rows.append(("malformed records", "warn", text, "find who else sends to this topic or port"))
    if missed := counts.refused + counts.dropped:
        text = f"{missed} packets came faster than they are taken: what follows is incomplete"
        rows.append(("missed records", "warn", text, "a longer monitor_interval in the processes"))
    once = [each for each in fleet.objects() if each.names and not watched.known(each)]
    if once:
        text = (
            f"{len(once)} of {len(fleet)} objects told of themselves once in {watched.seconds:.0f} s: no rates of them"
        )
        rows.append(("rates", "warn", text, "--seconds: twice the monitor_interval of the fleet, or more"))
    return rows


def silence(watched: Watched) -> list[Row]:
    """Nobody has ceased to speak."""
    silent = [each for each in watched.fleet.processes() if each.silent]
    texts = [f"{each.host} {each.application} (process {each.process_id})".replace("  ", " ") for each in silent]
    remedy = "see whether it was stopped, hangs in a callback, or has ended: ps on that host, the log of the program"
    return [_judged("silent processes", "FAIL", texts, "all go on speaking", remedy)]


# ---- loss ------------------------------------------------------------------------------------------------------------


def loss(watched: Watched) -> list[Row]:
    """Who misses datagrams: one receiver alone, or all of a session."""
    alone: list[str] = []
    together: list[str] = []
    undecided: list[str] = []
    hosts: list[str] = []
    for session, (_, receivers) in watched.sessions().items():
        lost = {each.link: watched.grown(each, "lost") for each in receivers}
        worst = max(lost.values(), default=0)
        losing = [each for each in receivers if lost[each.link] * ALONE > worst]
        if worst == 0:
            continue
        if len(receivers) == 1:
            undecided.append(f"{worst} datagrams at {who(receivers[0])}, the only receiver known of {session}")
        elif len(losing) < len(receivers):
            for each in losing:
                alone.append(f"{lost[each.link]} datagrams at {who(each)} of {about(watched, each)}")
                hosts.append(each.host)
        else:
            together.append(f"up to {worst} datagrams at each of {len(receivers)} receivers of {session}")
    rows: list[Row] = []
    if alone:
        names = ", ".join(sorted(set(hosts))[:NAMED])
        remedy = (
            f"run um doctor on {names}: receive buffers that the kernel has clamped (net.core.rmem_max) are the usual"
            " cause, then a receiver that is too slow for its thread, then its link"
        )
        rows.append(
            ("loss at one receiver", "warn", f"others of the session miss less or nothing: {listed(alone)}", remedy)
        )
    if together:
        remedy = (
            "look at the host of the source and what all receivers share: its link, a switch, a rate limit too high"
        )
        rows.append(("loss at all receivers", "warn", listed(together), remedy))
    if undecided:
        remedy = "run um doctor on its host first; then look at the network and the source"
        rows.append(("loss", "warn", listed(undecided), remedy))
    return rows or [
        ("loss", "ok", f"no receiver has missed a datagram in {watched.seconds:.0f} s{_earlier(watched)}", "")
    ]


def _earlier(watched: Watched) -> str:
    before = [each for each in watched.fleet.objects("receiver") if _final_so_far(each)]
    if not before:
        return ""
    return f"; before that {listed(f'{_final_so_far(each)} were lost for good at {who(each)}' for each in before)}"


def _final_so_far(each: MonitoredObject) -> int:
    return each.value("unrecovered_txw") + each.value("unrecovered_tmo")


def unrecovered(watched: Watched) -> list[Row]:
    """What is missed is repaired: neither the source's window nor the receiver's patience is too short."""
    window: list[str] = []
    patience: list[str] = []
    for each in watched.fleet.objects("receiver"):
        if gone := watched.grown(each, "unrecovered_txw"):
            window.append(
                f"{gone} datagrams had left the source's window when {who(each)} asked: {about(watched, each)}"
            )
        if gone := watched.grown(each, "unrecovered_tmo"):
            patience.append(f"{gone} datagrams were not repaired while {who(each)} asked: {about(watched, each)}")
    rows = []
    if window:
        remedy = (
            "a larger transport_lbtrm_transmission_window_size (lbtru likewise) of the source, or shorter"
            " nak_initial_backoff_interval and nak_generation_interval of the receiver: the window must last longer"
            " than it asks"
        )
        rows.append(("transmission window", "FAIL", listed(window), remedy))
    if patience:
        remedy = (
            "a larger transport_lbtrm_retransmit_rate_limit (lbtru likewise) of the source, or a longer"
            " nak_generation_interval of the receiver; NAKs must reach the source: see its naks_rcved, and firewalls"
        )
        rows.append(("repairs", "FAIL", listed(patience), remedy))
    return rows or [("repairs", "ok", "nothing was lost for good", "")]


def nak_timing(watched: Watched) -> list[Row]:
    """Receivers ask no sooner than sources repair, nor for more than their rate of repairs allows."""
    sooner: list[str] = []
    shed: list[str] = []
    for each in watched.fleet.objects("source"):
        ignored, asked = watched.grown(each, "naks_ignored"), watched.grown(each, "naks_rcved")
        if ignored and ignored > IGNORED_SHARE * asked:
            sooner.append(f"{ignored} of {asked} NAKs at {who(each)}: {about(watched, each)}")
        if refused := watched.grown(each, "naks_shed"):
            shed.append(f"{refused} NAKs at {who(each)}: {about(watched, each)}")
    rows = []
    if sooner:
        text = f"receivers ask again before the source repairs again: {listed(sooner)}"
        remedy = (
            "make nak_backoff_interval of the receivers longer than ignore_interval of the source, or that shorter"
            " (both transport_lbtrm_ or transport_lbtru_)"
        )
        rows.append(("NAK timing", "warn", text, remedy))
    if shed:
        text = f"the source refuses repairs beyond its rate limit: {listed(shed)}"
        rows.append(
            (
                "repair rate",
                "warn",
                text,
                "a larger transport_lbtrm_retransmit_rate_limit (lbtru likewise) of the source",
            )
        )
    return rows or [("NAK timing", "ok", "sources repair what receivers ask for", "")]


def datagrams(watched: Watched) -> list[Row]:
    """Both sides of a session mean the same by a datagram, and nobody else sends there."""
    sizes = [
        f"{number} at {who(each)}: {about(watched, each)}"
        for each in watched.fleet.objects("receiver")
        if (number := watched.grown(each, "dgrams_dropped_size"))
    ]
    foreign = [
        f"{number} at {who(each)}: {about(watched, each)}"
        for each in watched.fleet.objects("receiver")
        if (number := watched.grown(each, *FOREIGN))
    ]
    rows = []
    if sizes:
        remedy = "the same transport_lbtrm_datagram_max_size (lbtru likewise) on both sides; then who else sends there"
        rows.append(("datagram sizes", "FAIL", f"dropped for their size: {listed(sizes)}", remedy))
    if foreign:
        remedy = "the same versions on both sides, and ports and groups that nothing else sends to"
        rows.append(("datagrams", "warn", f"dropped as those of something else: {listed(foreign)}", remedy))
    return rows or [("datagrams", "ok", "none was dropped for its size, type or version", "")]


def strangers(watched: Watched) -> list[Row]:
    """Hosts do not receive what nobody on them wants."""
    texts = [
        f"{number / watched.seconds:,.0f}/s at {who(each)}"
        for each in watched.fleet.objects("context")
        if watched.seconds
        and (number := watched.grown(each, "lbtrm_unknown_msgs_rcved", "lbtru_unknown_msgs_rcved"))
        >= STRANGE_MANY * watched.seconds
    ]
    remedy = "a group for each set of topics that belong together (transport_lbtrm_multicast_address_low and _high)"
    return [_judged("unwanted sessions", "warn", texts, "hosts receive what they want", remedy)]


# ---- one side only ---------------------------------------------------------------------------------------------------


def one_sided(watched: Watched) -> list[Row]:
    """What a source sends arrives wherever somebody waits for it."""
    deaf: list[str] = []
    hosts: set[str] = set()
    for sources, receivers in watched.sessions().values():
        for source in sources:
            for hearer in _waiting(watched, source, receivers):
                sent = watched.sent(source, hearer)
                if sent and watched.known(hearer) and not watched.grown(hearer, "msgs_rcved"):
                    hosts.add(hearer.host)
                    deaf.append(
                        f"{who(hearer)} got none of {sent} datagrams of {about(watched, source)}, {who(source)}"
                    )
    remedy = (
        f"run um doctor on {', '.join(sorted(hosts)[:NAMED])}; where its multicast works there: a switch with IGMP"
        " snooping and no querier, a firewall, too small a TTL, another interface than meant (default_interface)"
    )
    return [_judged("one-sided sessions", "FAIL", deaf, "what is sent arrives where it is wanted", remedy)]


def _waiting(watched: Watched, source: MonitoredObject, receivers: list[MonitoredObject]) -> Iterable[MonitoredObject]:
    """Who should hear a source: its receivers, and topics that know it in contexts without a receiver of it."""
    session = session_of(source.source)
    there = {(each.process.key, each.context) for each in receivers}
    topics = {
        (topic.process.key, topic.context): topic
        for topic in watched.fleet.objects("topic")
        if session in topic.sessions
    }
    return [*receivers, *(topic for place, topic in topics.items() if place not in there)]


def connections(watched: Watched) -> list[Row]:
    """Sources that know their receivers have those that wait for them."""
    texts: list[str] = []
    for session, (sources, _) in watched.sessions().items():
        for source in sources:
            if "num_clients" not in source.names or source.value("num_clients"):
                continue
            waiting = [
                topic for topic in watched.fleet.objects("topic") if session in topic.sessions and watched.known(topic)
            ]
            if waiting:
                texts.append(f"{who(waiting[0])} wants {about(watched, source)}, and {who(source)} has no client")
    remedy = "a firewall between the two, or a source whose address others cannot reach (default_interface)"
    return [_judged("connections", "FAIL", texts, "sources have the clients that want them", remedy)]


def unresolved(watched: Watched) -> list[Row]:
    """A topic with sources has them for everybody."""
    topics: dict[str, tuple[list[MonitoredObject], list[MonitoredObject]]] = {}
    for each in watched.fleet.objects("topic"):
        topics.setdefault(each.source, ([], []))[bool(each.sessions)].append(each)
    partial = [
        f"{who(without[0])} finds no source of {topic}, and {who(with_[0])} does"
        for topic, (without, with_) in topics.items()
        if without and with_
    ]
    nowhere = [topic for topic, (without, with_) in topics.items() if without and not with_]
    good = "every topic with a source has one everywhere"
    remedy = (
        "the same resolver_multicast_address, port and resolution domain, or the same lbmrd or srs, on both sides;"
        " um doctor on the side that finds nothing"
    )
    rows = [_judged("resolution", "FAIL", partial, good, remedy)]
    if nowhere:
        rows.append(("topics without source", "note", f"nobody knows one of {listed(sorted(nowhere))}", ""))
    return rows


def resolver(watched: Watched) -> list[Row]:
    """Topic resolution gets its datagrams out, and in."""
    failed: list[str] = []
    dropped: list[str] = []
    for each in watched.fleet.objects("context"):
        if number := watched.grown(each, "tr_dgrams_send_failed"):
            failed.append(f"{number} datagrams at {who(each)}")
        number = watched.grown(each, "tr_dgrams_dropped_ver", "tr_dgrams_dropped_type", "tr_dgrams_dropped_malformed")
        if number:
            dropped.append(f"{number} datagrams at {who(each)}")
    rows = []
    if failed:
        remedy = "um doctor on that host: its interface, routes and firewall; a limit of the kernel (net.core.wmem_max)"
        rows.append(("resolver sends", "FAIL", f"topic resolution could not send {listed(failed)}", remedy))
    if dropped:
        remedy = "something else sends to the group or port of topic resolution: another resolver_multicast_port"
        rows.append(("resolver datagrams", "warn", f"topic resolution could not read {listed(dropped)}", remedy))
    return rows or [("resolver", "ok", "topic resolution sends and reads everything", "")]


# ---- who waits -------------------------------------------------------------------------------------------------------


def sends(watched: Watched) -> list[Row]:
    """Nobody waits for room to send."""
    blocked = [
        f"{number} sends at {who(each)}"
        for each in watched.fleet.objects("context")
        if (number := watched.grown(each, *WAITS))
    ]
    held: list[str] = []
    buffered: list[str] = []
    for each in watched.fleet.objects("source"):
        if number := each.value("rctlr_data_msgs"):
            held.append(f"{number} datagrams at {who(each)}: {about(watched, each)}")
        if (number := each.value("bytes_buffered")) >= BUFFERED_MANY:
            buffered.append(
                f"{number} bytes for {each.value('num_clients')} clients at {who(each)}: {about(watched, each)}"
            )
    rows = []
    if blocked:
        remedy = (
            "what holds them is told beside this, or is a rate limit: transport_lbtrm_data_rate_limit (lbtru likewise)"
        )
        rows.append(("blocked sends", "warn", f"had to wait or were refused: {listed(blocked)}", remedy))
    if held:
        remedy = "a larger transport_lbtrm_data_rate_limit (lbtru likewise): `context um_profile low_latency` has one"
        rows.append(("rate limit", "warn", f"held back by the rate limit: {listed(held)}", remedy))
    if buffered:
        remedy = "a receiver reads too slowly: um top, or the page of um web, rank them"
        rows.append(("slow clients", "warn", f"wait in sources over TCP: {listed(buffered)}", remedy))
    return rows or [("sends", "ok", "nobody waits for room", "")]


def queues(watched: Watched) -> list[Row]:
    """Event queues are emptied, and callbacks end soon."""
    long = [
        f"{each.value('events')} events at {who(each)}, the oldest taken waited {each.value('age_max') / 1000:,.0f} ms"
        for each in watched.fleet.objects("event_queue")
        if each.value("events") >= QUEUE_LONG
    ]
    slow = [
        f"up to {each.value('rcv_cb_svc_time_max') / 1000:,.0f} ms at {who(each)}"
        for each in watched.fleet.objects("context")
        if each.value("rcv_cb_svc_time_max") >= CALLBACK_LONG
    ]
    rows = [
        _judged(
            "event queues",
            "warn",
            long,
            "no queue is long",
            "more threads that dispatch, or less work in each callback",
        )
    ]
    if slow:
        text = f"callbacks on the thread that receives take {listed(slow)}"
        rows.append(("callbacks", "warn", text, "an event queue, or less work: nothing else is received meanwhile"))
    return rows


def beyond(watched: Watched) -> list[Row]:
    """What no record tells, and what none has told."""
    text = (
        "records have numbers, no options: buffers that the kernel has clamped, interfaces, TTLs, firewalls and clocks"
        " are told by um doctor on each host"
    )
    rows: list[Row] = [("not in records", "note", text, "")]
    if watched.fleet.objects("receiver") and not watched.fleet.objects("topic"):
        text = (
            "nobody tells its topics (`receiver monitor_interval 5`): who wants a session and has no receiver of it, or"
            " finds no source, is not seen"
        )
        rows.append(("topics", "note", text, ""))
    return rows


CHECKS: tuple[Callable[[Watched], list[Row]], ...] = (
    records,
    silence,
    loss,
    unrecovered,
    nak_timing,
    datagrams,
    strangers,
    one_sided,
    connections,
    unresolved,
    resolver,
    sends,
    queues,
    beyond,
)


def examine(watched: Watched) -> list[Row]:
    """All rows; only the first check where there is nothing to look at."""
    if not len(watched.fleet):
        return records(watched)
    return [row for check in CHECKS for row in check(watched)]
