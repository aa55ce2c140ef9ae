"""Ask a process that has the libraries to run a command: `python ask_preloaded.py SOCKET WORDS`.

Started without site-packages: it is done before Python would have imported `hpc_train`.
"""

from __future__ import annotations

import json
import os
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def ask(
    path: Path | str,
    words: Sequence[str],
    environment: Mapping[str, str],
    here: Path | str,
    streams: Sequence[int],
) -> socket.socket:
    """Send a command, its environment, folder and streams; return where its exit code arrives."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(str(path))
    request = json.dumps([list(words), dict(environment), str(here)]).encode()
    socket.send_fds(connection, [request], list(streams))
    return connection


if __name__ == "__main__":
    file, *arguments = sys.argv[1:]
    here = os.getcwd()  # noqa: PTH109 - to import pathlib takes longer than all else here
    answer = ask(file, arguments, os.environ, here, (0, 1, 2)).recv(64)
    code = int(answer)
    # As a shell has it, when a signal ended the command.
    sys.exit(code if code >= 0 else 128 - code)
