"""Ask the lab's ClickHouse one statement over HTTP. For provisioning; the product has its own adapter."""

from __future__ import annotations

import urllib.error
import urllib.request
from dataclasses import dataclass

from dpone_provider.domain.outcomes import fail, unwind
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.ports import LOOPBACK

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickhouseSession:
    """One user at ``port``, on loopback unless another host is named."""

    port: int
    user: str
    password: Secret
    host: str = LOOPBACK

    def ask(self, statement: str) -> str:
        """Send ``statement`` and return the answer's text without its last line end.

        Raises:
            DponeError: the server refused it; the message holds the server's own words.
        """
        headers = {"X-ClickHouse-User": self.user, "X-ClickHouse-Key": self.password.reveal()}
        request = urllib.request.Request(f"http://{self.host}:{self.port}/", statement.encode(), headers)
        try:
            with _DIRECT.open(request, timeout=60.0) as answer:
                return str(answer.read().decode().removesuffix("\n"))
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace").strip()
        except OSError as error:
            said = str(error)
        unwind(
            fail(
                "clickhouse_refused",
                f"the lab's ClickHouse, user {self.user}",
                found=said,
                allowed="a statement that the server runs",
                next_command="dpone lab status",
            )
        )
