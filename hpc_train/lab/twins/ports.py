"""Unused ports of this machine."""

from __future__ import annotations

import socket
import zlib
from collections.abc import Iterator

from hpc_train.lab.errors import LabError

# Below the range of outgoing connections.
_FIRST, _NUMBER = 20000, 10000


def free_ports(name: str) -> Iterator[int]:
    """Yield free ports, usually the same ones for the same name.

    Raises:
        LabError: there is no further free port.
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
