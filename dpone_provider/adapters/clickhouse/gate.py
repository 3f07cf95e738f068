"""Which form of the gate a service has: a typed option decides, never a guess."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from dpone_provider.adapters.clickhouse.session import ClickHouseServer
from dpone_provider.adapters.clickhouse.sql_users import SqlUserGate, SqlUsers
from dpone_provider.adapters.clickhouse.user_pool import UserPool, UserPoolGate
from dpone_provider.application.ports.gate import LoginGate
from dpone_provider.domain.identity import ServiceId

GateOption: TypeAlias = SqlUsers | UserPool


def login_gate(server: ClickHouseServer, service_id: ServiceId, option: GateOption) -> LoginGate:
    """Return the gate of one ClickHouse, through the controller's user."""
    match option:
        case SqlUsers():
            return SqlUserGate(server, service_id, option)
        case UserPool():
            return UserPoolGate(server, service_id, option)
        case _:
            assert_never(option)
