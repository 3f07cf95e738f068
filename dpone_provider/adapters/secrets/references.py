"""Credential references resolved late: ``env:NAME``, ``file:PATH``, ``airflow:CONN_ID``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from dpone_provider.adapters.secrets.airflow_connection import read_connection
from dpone_provider.adapters.secrets.private_file import PrivateFileProblem, read_private_file
from dpone_provider.adapters.secrets.url import UrlProblem, parse_url
from dpone_provider.application.ports.credentials import ResolvedReference
from dpone_provider.domain.outcomes import Refused, refuse

GRAMMAR = "env:NAME, file:/absolute/path or airflow:CONN_ID"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONN_ID = re.compile(r"[\w.-]{1,250}", re.ASCII)


class ReferencedCredentials:
    """Resolves credential references; ``environment`` is the process's own unless a test gives another."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        """Read ``env:`` references from ``environment``."""
        self._environment = os.environ if environment is None else environment

    def resolve(self, reference: str) -> ResolvedReference | Refused:
        """Return what ``reference`` stands for now; a refusal names the reference, never any part of a value."""
        scheme, _, rest = reference.partition(":")
        match scheme:
            case "env" if _NAME.fullmatch(rest):
                return self._from_environment(reference, rest)
            case "file" if rest.startswith("/") and rest.isprintable():
                return _from_file(reference, rest)
            case "airflow" if _CONN_ID.fullmatch(rest):
                return read_connection(reference, rest)
            case _:
                return _not_a_reference(scheme)

    def _from_environment(self, reference: str, name: str) -> ResolvedReference | Refused:
        value = self._environment.get(name)
        if not value:
            return refuse(
                "credential_missing",
                f"credential reference {reference}",
                found="no such environment variable, or an empty one",
                allowed="an environment variable that holds a connection URL",
                next_command=f"set {name} in the environment of this process",
            )
        return _from_url(reference, value)


def _from_file(reference: str, path: str) -> ResolvedReference | Refused:
    try:
        text = read_private_file(path)
    except PrivateFileProblem as problem:
        return refuse(
            "credential_file_unusable",
            f"credential reference {reference}",
            found=str(problem),
            allowed="a regular file of this user's or root's, for its owner only, holding one connection URL",
            next_command=f"chmod 0400 {path}",
        )
    return _from_url(reference, text)


def _from_url(reference: str, text: str) -> ResolvedReference | Refused:
    try:
        return parse_url(text)
    except UrlProblem as problem:
        return refuse(
            "credential_malformed",
            f"credential reference {reference}",
            found=str(problem),
            allowed="a URL such as postgresql://user:password@host:5432/database, user and password percent-encoded",
            next_command="correct the value that the reference stands for",
        )


def _not_a_reference(scheme: str) -> Refused:
    # Somebody who writes the URL itself where a reference belongs has put a password there: it is not repeated.
    known = scheme if scheme in ("env", "file", "airflow") else "unknown"
    return refuse(
        "credential_reference_malformed",
        "a credential reference of the connection registry",
        found=f"a reference of scheme {known} that does not follow the grammar",
        allowed=GRAMMAR,
        next_command="correct the credential reference in the environment's file",
    )
