"""The address of all twins, and free ports for each.

It is a loopback address with a route without delayed acknowledgements: Slurm's programs write a
message in two parts, and the kernel delays the second until the first is acknowledged, which takes
40 ms. With immediate acknowledgement a twin with accounting starts in two seconds instead of ten.
"""

from __future__ import annotations

import socket
import zlib
from collections.abc import Iterator

from hpc_train.errors import LabError
from hpc_train.lab.run_program import ask

ADDRESS = "127.77.0.1"
_ROUTE = ("local", ADDRESS, "dev", "lo", "table", "local")
# Below the range that Linux assigns to outgoing connections.
_FIRST, _NUMBER = 20000, 10000


def add_route() -> None:
    """Add the route; if this fails, the address works, but is slower."""
    ask(("ip", "route", "replace", *_ROUTE, "src", ADDRESS, "quickack", "1"))


def remove_route() -> None:
    """Remove the route."""
    ask(("ip", "route", "del", *_ROUTE))


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
