"""What Source(retain=...) and Receiver(replay=...) mean, as options of the library."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import timedelta

from um_cffi.binding.arguments import shown, whole
from um_cffi.errors import InvalidArgument

_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(k|M|G|T|Ki|Mi|Gi|Ti)?B")
_UNITS = {unit: 1000**power for power, unit in enumerate("kMGT", 1)} | {
    f"{unit}i": 1024**power for power, unit in enumerate("KMGT", 1)
}


def _bytes_of(call: str, text: str) -> int:
    found = _SIZE.fullmatch(text)
    if found is None:
        raise InvalidArgument(f"{call}: retain {shown(text)}: must be a size such as '64 MB' or '500 KiB'")
    size: int = math.ceil(float(found[1]) * _UNITS.get(found[2] or "", 1))
    if not 0 < size < 2**63:
        raise InvalidArgument(f"{call}: retain {shown(text)}: must be more than nothing, and less than 2**63 bytes")
    return size


def _seconds_of(call: str, age: timedelta) -> int:
    seconds = math.ceil(age.total_seconds())
    if not 0 < seconds < 2**31:
        raise InvalidArgument(f"{call}: retain {shown(age)}: must be more than no time, and less than 2**31 seconds")
    return seconds


def retention(call: str, retain: object) -> dict[str, object]:
    """The options of a source that keeps what it sent: so many messages, bytes, or for so long."""
    if retain is None:
        return {}
    if isinstance(retain, str):
        return {"late_join": True, "retransmit_retention_size_threshold": _bytes_of(call, retain)}
    if isinstance(retain, timedelta):
        return {"late_join": True, "retransmit_retention_age_threshold": _seconds_of(call, retain)}
    if isinstance(retain, bool) or not hasattr(retain, "__index__"):
        raise InvalidArgument(
            f"{call}: retain {shown(retain)}: must be a number of messages, a size as a str ('64 MB'), or a timedelta"
        )
    messages = whole(f"{call}: retain", retain, 1)
    return {"late_join": True, "um_retransmit_retention_message_threshold": messages}


def replay_of(call: str, replay: object) -> dict[str, object]:
    """The options of a receiver that wants what its sources have kept: all of it, the newest so many, or nothing."""
    if replay is None:
        return {}
    if isinstance(replay, str) and replay == "all":
        return {"use_late_join": True, "retransmit_request_maximum": 0}
    if isinstance(replay, timedelta):
        raise InvalidArgument(
            f"{call}: replay {shown(replay)}: messages do not tell when they were sent, so that a replay cannot begin "
            "at a time; let the source keep as much (retain=timedelta(...)), and ask for 'all' of it"
        )
    if isinstance(replay, bool) or not hasattr(replay, "__index__"):
        raise InvalidArgument(f"{call}: replay {shown(replay)}: must be 'all' or a number of messages")
    messages = whole(f"{call}: replay", replay)
    return {"use_late_join": messages > 0, "retransmit_request_maximum": messages}


def with_meaning(call: str, what: str, meaning: Mapping[str, object], given: dict[str, object]) -> dict[str, object]:
    """The options given, and those that an argument stands for; none of them twice."""
    for name in meaning:
        if name in given:
            raise InvalidArgument(f"{call}: {what} sets the option {name}, which is given too: leave one of them out")
    return {**given, **meaning}
