#!/usr/bin/python3
"""A stand-in for a ClickHouse server binary: enough of its command line, users and HTTP for the lab's own statements.

It reads the configuration that the lab writes, keeps users.xml until it is told to read it again, makes users by SQL,
and refuses whoever it does not know. It is no evidence of how a real server behaves.
"""

from __future__ import annotations

import hashlib
import re
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from xml.etree import ElementTree

VERSION = "25.8.1.1"
users_from_sql: dict[str, str] = {}
users_from_file: dict[str, str] = {}
grants: list[str] = []


def reload_users(path: str) -> None:
    users_from_file.clear()
    for user in ElementTree.parse(path).getroot().find("users") or []:
        users_from_file[user.tag] = user.findtext("password_sha256_hex") or ""


def answer(user: str, statement: str, users_path: str) -> str:
    if made := re.match(r"CREATE USER `(\w+)` IDENTIFIED WITH sha256_hash BY '(\w+)'", statement):
        users_from_sql[made[1]] = made[2]
    elif statement.startswith("GRANT "):
        grants.append(statement)
    elif statement.startswith("SYSTEM RELOAD CONFIG"):
        reload_users(users_path)
    elif statement == "SELECT version()":
        return VERSION + "\n"
    elif statement == "SHOW GRANTS":
        return "\n".join(grant for grant in grants if f" TO `{user}`" in grant) + "\n"
    elif statement == "SHOW USERS":
        return "\n".join(sorted(users_from_sql | users_from_file)) + "\n"
    elif not statement.startswith("CREATE DATABASE "):
        raise ValueError(statement)
    return ""


def serve(config_path: str) -> None:
    config = ElementTree.parse(config_path).getroot()
    users_path = config.findtext("user_directories/users_xml/path") or ""
    reload_users(users_path)
    Path(config.findtext("user_directories/local_directory/path") or "").mkdir(parents=True)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply(200, "Ok.\n" if self.path == "/ping" else "")

        def do_POST(self) -> None:
            user, password = self.headers["X-ClickHouse-User"], self.headers["X-ClickHouse-Key"]
            statement = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if (users_from_sql | users_from_file).get(user) != hashlib.sha256(password.encode()).hexdigest():
                self.reply(403, f"Code: 516. {user}: Authentication failed")
                return
            try:
                self.reply(200, answer(user, statement, users_path))
            except ValueError:
                self.reply(400, "Code: 62. Syntax error")

        def reply(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

    HTTPServer((config.findtext("listen_host") or "", int(config.findtext("http_port") or 0)), Handler).serve_forever()


if sys.argv[1] == "--version":
    sys.stdout.write(f"ClickHouse server version {VERSION} (a stand-in).\n")
elif sys.argv[1] == "server":
    serve(sys.argv[2].removeprefix("--config-file="))
