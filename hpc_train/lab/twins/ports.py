"""Ports of this machine that nobody listens on."""

from __future__ import annotations

import socket
import zlib
from collections.abc import Iterator

from hpc_train.lab.errors import LabError

# Below those that the system gives to outgoing connections.
_FIRST, _NUMBER = 20000, 10000


def free_ports(name: str) -> Iterator[int]:
    """Yield free ports, for one name mostly the same ones.

    Raises:
        LabError: there is no other.
    """
    start = zlib.crc32(name.encode()) % _NUMBER
    for offset in range(_NUMBER):
        port = _FIRST + (start + offset) % _NUMBER
        if _is_free(port):
            yield port
    raise LabError(f"all ports from {_FIRST} to {_FIRST + _NUMBER - 1} are in use")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
