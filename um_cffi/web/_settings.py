"""What `um web` permits: addresses, clients, rates, memory. Constant while it runs; read on any thread."""

from __future__ import annotations

from dataclasses import dataclass, field

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Settings:
    """Bounds of the page; times in seconds."""

    host: str = "127.0.0.1"  #: address to listen on
    port: int = 8060  #: 0 is any free one
    token: str = ""  #: what a browser has to know; "" is nothing
    names: tuple[str, ...] = ()  #: further names in the Host header, as a proxy uses them
    title: str = "Fleet"  #: of the page
    connections: int = 256  #: at a time
    connections_per_address: int = 64  #: of one address that is not this host
    streams: int = 64  #: browsers that are kept up to date at a time
    rate: float = 50.0  #: requests a second of one address
    burst: float = 200.0  #: requests of one address at once
    quiet: float = 10.0  #: a connection without a whole request is closed
    stalled: float = 20.0  #: a connection that does not take what was sent is closed
    interval: float = 1.0  #: between two states of the page
    history_objects: int = 10_000  #: whose last hour is kept: 12 KB each
    duty: float = 0.7  #: share of the time that records may take; the others are dropped and counted
    allowed: frozenset[str] = field(init=False)  #: names in the Host header

    def __post_init__(self) -> None:
        allowed = {self.host, *self.names, *(LOOPBACK if self.loopback else ())}
        object.__setattr__(self, "allowed", frozenset(each.lower().strip("[]") for each in allowed))

    @property
    def loopback(self) -> bool:
        """Whether nobody but this host can connect."""
        return self.host in LOOPBACK or self.host.startswith("127.")

    @property
    def any_host(self) -> bool:
        """Whether any name in the Host header is taken: where it listens on every address and no names were given."""
        return self.host in ("0.0.0.0", "::") and not self.names
