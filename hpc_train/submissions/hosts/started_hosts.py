"""hosts.json: the hosts of a run, written before anything starts on them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from hpc_train.json_files import write_file
from hpc_train.model.run import RunFolder
from hpc_train.model.value import Value
from hpc_train.regularfile import read_regular
from hpc_train.submissions.hosts.transport import Answer, at_once

_FILE = "hosts.json"


class StartedHost(Value, frozen=True, kw_only=True):
    """A host of a run: its names, the run's folder on it, and its boot when the lock was taken."""

    name: str
    address: str
    folder: str
    boot: str


class StartedHosts(Value, frozen=True, kw_only=True):
    """The hosts of a run, in the order of their node ranks, and the port of the rendezvous."""

    hosts: tuple[StartedHost, ...]
    port: str = ""

    def each(self, call_one: Callable[[StartedHost], Answer]) -> list[Answer]:
        """Call for all hosts at once; return the answers in the order of node ranks."""
        return at_once(call_one, self.hosts)


def write_hosts(run: RunFolder, hosts: StartedHosts) -> None:
    """Write hosts.json atomically.

    Raises:
        StoreError: it cannot be written.
    """
    write_file(run.path / _FILE, msgspec.json.encode(hosts) + b"\n")


def read_hosts(run: RunFolder) -> StartedHosts | None:
    """Return the hosts of a run; None if it was not started on any."""
    try:
        return msgspec.json.decode(read_regular(run.path / _FILE), type=StartedHosts)
    except (OSError, msgspec.DecodeError):
        return None
