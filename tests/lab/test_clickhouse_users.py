"""Who may do what in the lab's ClickHouse: as it is written for the server."""

from __future__ import annotations

import hashlib
from xml.etree import ElementTree

from dpone_provider.domain.secret import Secret
from dpone_provider.lab.clickhouse_users import (
    CONTROLLER,
    ISSUING_GRANTS,
    READER,
    ClickhouseUser,
    create_statements,
    lab_users,
    no_users_xml,
    pool_names,
    pool_users,
    provisioner_xml,
    users_xml,
)

PASSWORDS = {CONTROLLER: Secret("controller's"), READER: Secret("reader's")}


def test_users_xml_holds_every_user_with_hash_grants_and_loopback_only() -> None:
    pool = {name: Secret(f"password of {name}") for name in pool_names(3)}
    text = users_xml([*lab_users(PASSWORDS), *pool_users(pool)])
    users = ElementTree.fromstring(text).find("users")
    assert users is not None
    assert [user.tag for user in users] == ["default", CONTROLLER, READER, *pool]
    assert {ip.text for ip in users.iter("ip")} == {"127.0.0.1"}
    reader = users.find(READER)
    assert reader is not None
    assert reader.findtext("password_sha256_hex") == hashlib.sha256(b"reader's").hexdigest()
    assert [query.text for query in reader.iter("query")] == ["GRANT SELECT ON mart.*"]
    assert not [secret for secret in (*PASSWORDS.values(), *pool.values()) if secret.reveal() in text]


def test_the_bootstrap_user_can_open_the_port_and_no_more() -> None:
    default = ElementTree.fromstring(users_xml([])).find("users/default")
    assert default is not None
    assert [query.text for query in default.iter("query")] == ["GRANT SYSTEM LISTEN ON *.*"]


def test_pool_names_carry_the_tag_of_our_logins_and_are_counted() -> None:
    assert pool_names(2) == ["dpone_v3_pool_0000", "dpone_v3_pool_0001"]
    assert len(set(pool_names())) == 256


def test_sql_for_a_real_server_holds_the_hash_and_puts_the_grant_option_last() -> None:
    user = ClickhouseUser(name="u", password=Secret("secret"), grants=("SELECT ON mart.*",))
    assert create_statements(user, more=ISSUING_GRANTS) == [
        f"CREATE USER `u` IDENTIFIED WITH sha256_hash BY '{user.password_hash}' HOST IP '127.0.0.1'",
        "GRANT SELECT ON mart.* TO `u`",
        "GRANT CREATE USER, ALTER USER, DROP USER ON *.* TO `u`",
        "GRANT SELECT, INSERT ON dpone_stage.* TO `u` WITH GRANT OPTION",
    ]


def test_the_provisioner_of_a_real_server_can_be_taken_away() -> None:
    made = ElementTree.fromstring(provisioner_xml(Secret("secret"))).find("users")
    left = ElementTree.fromstring(no_users_xml()).find("users")
    assert made is not None
    assert left is not None
    assert [user.tag for user in made] == ["dpone_lab_provisioner"]
    assert list(left) == []
