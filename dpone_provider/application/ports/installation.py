"""What is installed on a SQL Server instance, object by object, and a try of its gate."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from dpone_provider.domain.outcomes import Failed, Refused, Unknown


class ObjectKind(StrEnum):
    """What is compared. The value is what messages and the server's rows say."""

    MODULE = "module"
    TABLE = "table"
    KEY = "key"
    CHECK = "check"
    FOREIGN_KEY = "foreign key"
    INDEX = "index"
    GRANT = "grant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where objects are: a database, or the instance itself (LOGON triggers), whose ``database`` is empty."""

    database: str = ""

    def __str__(self) -> str:
        """Return it in words."""
        return f"database {self.database}" if self.database else "the instance"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledObject:
    """One object. ``name`` is ``schema.object``, or ``schema.table.part`` for what belongs to a table; triggers of a
    database or of the instance have their own name alone.

    ``definition`` by kind:

    - module: its text as the server keeps it (``sys.sql_modules``); None when the reader may not see it
    - table: ``name type null`` or ``name type not null`` per column, in order, with ``, `` between; types in lower case
      without blanks, as ``nvarchar(450)``, ``sysname``, ``datetimeoffset``
    - key: ``primary key (a, b)`` or ``unique (a, b)``
    - index: ``index (a, b)`` or ``unique index (a, b)``, with `` filtered `` and the words of its condition behind
      it if it has a WHERE
    - check: the words of its condition; the server writes conditions anew in its own form (`installation.conditions`)
    - foreign key: ``foreign key (a, b) references schema.table (c, d)``, and what it does beyond refusing
    - grant: empty; its name is ``PERMISSION [(columns)] on securable to principal``, columns in their names'
      order, with ``DENY `` before one that denies and `` with grant option`` behind one that may be passed on

    ``enabled`` is False for a disabled trigger or index, and for a constraint that is disabled or not trusted.
    """

    kind: ObjectKind
    name: str
    definition: str | None = ""
    enabled: bool = True


class InstallationReader(Protocol):
    """Reads one instance through a login that may see definitions. Total."""

    def read(self, place: Place) -> tuple[InstalledObject, ...] | Refused | Unknown:
        """Return what ``dpone_gate.describe`` says of a place (``sql/mssql/026_describe.sql``).

        That is everything of our schemas in a database (``dpone_control``, ``dpone_gate``, ``dpone_receipt``), its DDL
        triggers that are ours, and the grants to our roles and on our schemas; or the LOGON triggers of the instance
        that are ours. Unknown when the login may not see definitions: what is invisible is not absent.
        """


class GateTrial(Protocol):
    """Tries the gate from the outside: what happens to logons now. Total; the caller orders the calls."""

    def hindrances(self) -> tuple[str, ...] | Unknown:
        """Return why the gate does not guard now; empty when all is well."""

    def ordinary_logon(self) -> Failed | Unknown | None:
        """Log in anew with a login that is not ours; None when the server let it in, Failed when it refused."""

    def tagged_logon(self) -> int | Unknown | None:
        """Make a login with our tag and no gate row, log in with it, and drop it again, whatever happened.

        Returns the server's error number; None if the login was let in.
        """
