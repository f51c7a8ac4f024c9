"""Rules about locks and clocks that the sources keep, read from the sources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)

# ---- clocks ----

WALL_WAIT = re.compile(
    r"\bPTHREAD_COND_INITIALIZER\b"  # conditions without a clock of their own follow the wall clock
    r"|\bpthread_cond_init\s*\([^,]*,\s*(?:NULL|0)\s*\)"
    r"|\b(?:cnd_init|cnd_timedwait|mtx_timedlock|thrd_sleep)\b"
    r"|\b(?:sem_timedwait|mq_timedreceive|mq_timedsend|pthread_mutex_timedlock|pthread_timedjoin_np)\b"
    r"|\bpthread_rwlock_timed\w+\b"
    r"|\bCLOCK_REALTIME\b|\bFUTEX_CLOCK_REALTIME\b|\bFUTEX_WAIT_BITSET\w*\b|\bgettimeofday\b"
)
WALL_WAIT_PYTHON = re.compile(r"\btime\.time(?:_ns)?\(|\bfrom time import\b|\bdatetime\.(?:now|utcnow|today)\(")
# Files that read the time of day, how often, and what for. None waits for it.
TELLS_THE_TIME = {
    "csrc/base/um_clock.h": 1,  # um_clock_wall_ns()
    "examples/c/ex_price.c": 1,  # when a price was sent, for its receivers
    "examples/demo/publisher.py": 1,  # when a price was sent, for the recorder
    "um_cffi/binding/um_py_direct.c": 1,  # arrival times of messages
    "um_cffi/commands/_checks.py": 1,  # whether the machine's clock is synchronized
    "um_cffi/commands/tls_init.py": 1,  # from when to when a certificate is valid
    "um_cffi/commands/_top.py": 1,  # a column of the output
    "um_cffi/_calling.py": 1,  # how old a message is
    "um_cffi/monitoring/_exporter.py": 1,  # when metrics pushed over OTLP were read
    "um_cffi/recording/_retention.py": 1,  # how old a segment is
    "um_cffi/recording/_writer.py": 3,  # times in the manifest, and of rows about what was dropped
    "um_cffi/spark/_staging.py": 1,  # how old a file is that a killed write has left
    "um_cffi/web/_desk.py": 1,  # when events were, for the page
}
# What the library may do with um_clock_wall_ns(): stamp messages and lines, and mix it into random seeds.
WALL_READERS = {
    "csrc/base/um_clock.h",
    "csrc/base/um_debug.c",
    "csrc/base/um_log_kept.c",
    "csrc/base/um_random.c",
    "csrc/net/um_loop.c",
}


def sources(*folders: str) -> Iterator[tuple[str, str]]:
    """Path and text, without comments of C, of what is built and installed."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".c", ".h"):
                yield str(path.relative_to(ROOT)), COMMENT.sub("", path.read_text())
            elif path.suffix == ".py":
                yield str(path.relative_to(ROOT)), path.read_text()


def wall_waits(name: str, text: str) -> list[str]:
    """What in a file may follow the wall clock."""
    found = (WALL_WAIT if not name.endswith(".py") else WALL_WAIT_PYTHON).findall(text)
    if name.endswith(".py"):
        found += re.findall(r"\bCLOCK_REALTIME\b", text)
    return found


def test_f17_no_wait_can_follow_the_wall_clock() -> None:
    problems = []
    for name, text in sources("csrc", "include", "um_cffi", "examples", "benchmarks", "tools"):
        found = wall_waits(name, text)
        if len(found) != TELLS_THE_TIME.get(name, 0):
            problems.append(f"{name}: {found}: wait by um_wait.h or time.monotonic()")
        if "um_clock_wall_ns" in text and name not in WALL_READERS:
            problems.append(f"{name}: reads the wall clock")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.c", "static pthread_cond_t c = PTHREAD_COND_INITIALIZER;"),
        ("a.c", "pthread_cond_init(&a->b, NULL);"),
        ("a.c", "clock_gettime(CLOCK_REALTIME, &at);"),
        ("a.c", "sem_timedwait(&s, &at)"),
        ("a.py", "end = time.time() + 1"),
        ("a.py", "time.clock_gettime(time.CLOCK_REALTIME)"),
    ],
)
def test_f17_waits_for_the_wall_clock_are_found(name: str, text: str) -> None:
    assert wall_waits(name, text)


# ---- locks and fork ----

PROCESS_WIDE = re.compile(
    r"^(?:static\s+|_Thread_local\s+|_Alignas\(\w+\)\s+)*"
    r"(?:pthread_(?:mutex|cond|rwlock|spinlock)_t|struct\s+um_(?:lock|condition|turn))\s+(\w+)\s*(?:=[^;]*)?;",
    re.MULTILINE,
)
GUARDED = re.compile(r"^UM_FORK_(?:GUARD|GUARD_CONDITION|CHILD_LOCK)\((\w+)[,)]", re.MULTILINE)


def unguarded(text: str) -> list[str]:
    """Locks and conditions of a file that outlive every object and that fork() is not told of."""
    guarded = set(GUARDED.findall(text))
    return [name for name in PROCESS_WIDE.findall(text) if name not in guarded]


def test_f16_every_process_wide_lock_has_a_fork_guard() -> None:
    seen, problems = 0, []
    for name, text in sources("csrc", "um_cffi"):
        seen += len(PROCESS_WIDE.findall(text))
        problems += [f"{name}: {lock}" for lock in unguarded(text)]
    assert seen >= 10
    assert not problems, "a child of fork() finds them as they are: " + ", ".join(problems)


@pytest.mark.parametrize(
    "text",
    [
        "static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;\n",
        "static pthread_cond_t a;\n",
        "static struct um_lock a;\n",
        "pthread_mutex_t a;\n",
    ],
)
def test_f16_locks_without_a_guard_are_found(text: str) -> None:
    assert unguarded(text) == ["a"]


# ---- log ids ----

LOG_ID = re.compile(r'"([A-Z]\w+-(?:um-)?\d+(?:-\d+)?)"\s*,\s*"')
# Ids that several files use for one message, which is said about several things.
SAME_MESSAGE = {
    "Core-5402-1": "a hot failover number has another width",
    "Core-5988-1": "a requester has no port to answer to",
    "Core-5688-651": "a control object of shared memory cannot be used",
    "Core-6036-1": "a stream is corrupt",
    "Core-6976-114": "no receiver slot is free",
    "Core-9565-38": "one side of a connection uses TLS and the other does not",
    "CoreApi-5688-64": "a comment names it as an example",
    "Resolver-3": "a topic name is too long or empty",
    "CoreApi-5688-3238": "a kind of source-side filtering is not implemented",
    "CoreApi-5688-3236": "a message is too long",
    "CoreApi-5688-3251": "a transport is not implemented",
    "CoreApi-6976-69": "LBT-SMX carries no options of messages",
    "CoreApi-8812-2": "ports of TCP in the wrong order",
    "CoreApi-8812-3": "ports of unicast resolution in the wrong order",
    "CoreApi-8812-4": "ports of LBT-RM in the wrong order",
    "CoreApi-8812-5": "groups of LBT-RM in the wrong order",
    "CoreApi-8812-6": "ports of LBT-RU in the wrong order",
    "CoreApi-9020-3": "the size of a binary option",
}


def files_of_ids(texts: dict[str, str]) -> dict[str, set[str]]:
    """The files that use each log id, beside a text of its own."""
    files: dict[str, set[str]] = {}
    for name, text in texts.items():
        for log_id in LOG_ID.findall(text):
            files.setdefault(log_id, set()).add(name)
    return files


def test_f22_log_ids_stand_for_one_message() -> None:
    """Whoever searches for the id of a log line or error finds one place, or one message."""
    texts = {str(p.relative_to(ROOT)): p.read_text() for p in sorted((ROOT / "csrc").rglob("*.[ch]"))}
    files = files_of_ids(texts)
    assert len(files) > 400  # the pattern finds them
    shared = {log_id: names for log_id, names in files.items() if len(names) > 1}
    unknown = [
        f"{log_id}: {', '.join(sorted(names))}" for log_id, names in shared.items() if log_id not in SAME_MESSAGE
    ]
    assert not unknown, "one id for several messages:\n" + "\n".join(unknown)
    assert not [log_id for log_id in SAME_MESSAGE if log_id not in shared], "no longer shared"


def test_f22_an_id_that_is_used_twice_is_found() -> None:
    """The rule above sees a second use in another file."""
    line = 'um_error(UM_EINVAL, "CoreApi-1-1", "%s");'
    assert files_of_ids({"a.c": line, "b.c": line})["CoreApi-1-1"] == {"a.c", "b.c"}


# ---- what runs when the library is loaded ----


def test_f6_constructors_run_before_those_of_the_application() -> None:
    """In a program linked with the archive, constructors without a priority would run after the program's own."""
    early = {name for name, text in sources("csrc") if re.search(r"\bconstructor\b", text)}
    assert early == {"csrc/base/um_early.h"}, "use UM_RUN_EARLY"


# ---- byte streams ----

# On TCP sockets only net/um_stream calls these. Sockets of datagrams are in transport/udp.
SOCKET_CALL = re.compile(r"(?<![\w>.])(?:send|recv|sendmsg|recvmsg|sendto|recvfrom|connect|accept4?|shutdown)\s*\(")


def socket_calls(text: str) -> list[str]:
    """System calls on sockets in the text of a C file."""
    return [call.rstrip("( ") for call in SOCKET_CALL.findall(text)]


def test_transports_use_tcp_through_byte_streams_only() -> None:
    problems = []
    for name, text in sources("csrc/transport"):
        found = socket_calls(text) if not name.startswith("csrc/transport/udp/") else []
        problems += [f"{name}: {call}(): use um_stream_{call}() or its kin" for call in found]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("text", ["got = recv(fd, p, n, 0);", "if (send(fd, p, n, 0) < 0)", "accept4(fd, a, &l, 0)"])
def test_calls_past_the_byte_stream_are_found(text: str) -> None:
    assert socket_calls(text)


@pytest.mark.parametrize("text", ["ops->send(a);", "um_stream_accept(s, fd, &p)", "x.connect(a)"])
def test_other_names_are_no_calls_past_the_byte_stream(text: str) -> None:
    assert not socket_calls(text)


# ---- transports behind their tables ----

# What differs between transports is in the tables of transport/session (what a transport does) and in
# wire/um_transport_place (where its sources are). Elsewhere a type is handed on, never looked at.
TRANSPORT = r"(?:LBM_TRANSPORT_(?:TYPE|STAT)|LBM_SRC_TOPIC_ATTR_TRANSPORT)_\w+|UM_LBMR_(?:TCP6?|LBT[A-Z]+|PGM)\b"
TYPE_TEST = re.compile(
    rf"[=!]=\s*(?:{TRANSPORT})|(?:{TRANSPORT})\s*[=!]=|\bcase\s+(?:{TRANSPORT})|[<>]\s*(?:{TRANSPORT})"
)
# The codec of advertisements: each code has a form of its own there.
WRITES_TYPES = {"csrc/wire/um_lbmr_decode.c", "csrc/wire/um_lbmr_encode.c", "csrc/wire/um_transport_place.c"}


def type_tests(text: str) -> list[str]:
    """Places where the text of a C file does something else for one transport than for another."""
    return TYPE_TEST.findall(text)


def test_types_of_transports_are_told_apart_in_tables_only() -> None:
    problems = []
    for name, text in sources("csrc", "um_cffi/binding"):
        found = type_tests(text) if name.endswith((".c", ".h")) and name not in WRITES_TYPES else []
        problems += [f"{name}: {test}: ask um_transport_place() or an operation of the table" for test in found]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    "text",
    [
        "if (info->type == LBM_TRANSPORT_TYPE_TCP)",
        "if (LBM_TRANSPORT_TYPE_LBTRM != type)",
        "switch (type) { case LBM_TRANSPORT_TYPE_LBTIPC: break; }",
        "bool memory = code == UM_LBMR_LBTSMX;",
        "stats.type == LBM_TRANSPORT_STAT_LBTRU ? 1 : 0",
        "opts->transport == LBM_SRC_TOPIC_ATTR_TRANSPORT_LBTIPC",
    ],
)
def test_tests_of_transport_types_are_found(text: str) -> None:
    assert type_tests(text)


@pytest.mark.parametrize("text", [".type = LBM_TRANSPORT_TYPE_TCP,", "add(set, LBM_TRANSPORT_TYPE_LBTRM, &sum);"])
def test_types_that_are_handed_on_are_no_tests(text: str) -> None:
    assert not type_tests(text)
