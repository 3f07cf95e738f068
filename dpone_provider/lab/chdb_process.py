"""The process that is the lab's ClickHouse: ``clickhouse local`` out of libchdb, listening.

``python -m dpone_provider.lab.chdb_process PARENT_PID UID GID LIBRARY CONFIG START_SQL``. The library is loaded before
the user changes, because the engine account may not reach it; afterwards nothing more is imported. ``clickhouse local``
takes two files of queries: the first opens the port, the second is standard input, which it reads to its end before it
runs anything of it. So it serves until standard input closes, and then ends by itself, in order.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from dpone_provider.lab.launch import become, die_with

STANDARD_INPUT = "/dev/stdin"


def load(path: str) -> ctypes.CDLL:
    """Load libchdb and declare the three functions that are used (chdb.h of the package's release)."""
    library = ctypes.CDLL(path)
    library.chdb_query_cmdline.restype = ctypes.c_void_p
    library.chdb_query_cmdline.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]
    library.chdb_result_error.restype = ctypes.c_char_p
    library.chdb_result_error.argtypes = [ctypes.c_void_p]
    return library


def serve(library: ctypes.CDLL, *, config: str, start_sql: str) -> str | None:
    """Serve until standard input closes; return the library's error, None when there was none.

    The entry point takes the options of ``clickhouse local`` without the word ``local``.
    """
    words = ["clickhouse", "--config-file", config, "--queries-file", start_sql, STANDARD_INPUT]
    arguments = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
    result = library.chdb_query_cmdline(len(words), arguments)
    error = library.chdb_result_error(result) if result else b"no result"
    return None if error is None else error.decode(errors="replace").split(", Stack trace")[0]


def main(argv: list[str]) -> int:
    """Load, drop privileges, tie this process to its parent, serve."""
    parent, uid, gid = (int(word) for word in argv[1:4])
    library_path, config, start_sql = argv[4:7]
    library = load(library_path)
    if os.geteuid() != uid:
        # Otherwise the new user could not open it by name: it belongs to whoever made the pipe.
        os.fchown(sys.stdin.fileno(), uid, gid)
    become(uid, gid)
    die_with(parent, signal.SIGKILL)
    error = serve(library, config=config, start_sql=start_sql)
    if error is not None:
        sys.stderr.write(error + "\n")
    return 0 if error is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
