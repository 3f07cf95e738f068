"""Where a service is and how it is spoken to: typed once, the same for every driver."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.secret import Secret


class TlsMode(StrEnum):
    """One vocabulary for every driver; adapters translate it and never choose a default of their own."""

    DISABLED = "disabled"
    """Clear text: loopback labs only."""
    TRUST = "trust"
    """Encrypted, the server's certificate is not checked."""
    VERIFY = "verify"
    """Encrypted, certificate and host name are checked."""
    STRICT = "strict"
    """TDS 8.0 on SQL Server; the same as VERIFY elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One database of one server, without any credential."""

    kind: EngineKind
    host: str
    port: int
    database: str
    tls: TlsMode

    def __post_init__(self) -> None:
        """Refuse a port outside 1..65535 and empty names."""
        if not self.host or not self.database or not 0 < self.port < 65536:
            raise ValueError(f"not an endpoint: {self.host!r}:{self.port}/{self.database!r}")

    def __str__(self) -> str:
        """Return ``kind://host:port/database``, for messages."""
        return f"{self.kind}://{self.host}:{self.port}/{self.database}"


@dataclass(frozen=True, slots=True)
class Credential:
    """Who connects; printing it shows the user only."""

    user: str
    password: Secret
