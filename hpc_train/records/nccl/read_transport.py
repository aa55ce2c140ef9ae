"""Logs of a run -> Transport."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hpc_train.errors import LogParseError
from hpc_train.model.network import Network
from hpc_train.model.transport import Transport
from hpc_train.records.find_logs import log_files
from hpc_train.records.line_dispatch import dispatch
from hpc_train.records.log_file import open_log
from hpc_train.records.nccl.counts import Tally
from hpc_train.records.nccl.facts import facts
from hpc_train.records.nccl.reader import TransportReader
from hpc_train.records.nccl.transport_verdict import verdict


def transport_of(
    paths: Sequence[Path], promised: Network | None = None, *, root: Path | None = None
) -> Transport | None:
    """Return the transport that NCCL used in a run; None without a line of NCCL.

    A folder selects the logs in it. `promised` is the network of the profile; paths in evidence are
    relative to `root`. A file that cannot be read is skipped; it is reported with the records.
    """
    together = Tally()
    for path in log_files(list(paths)):
        inside = root is not None and path.is_relative_to(root)
        source = path.relative_to(root).as_posix() if root and inside else path.as_posix()
        with suppress(LogParseError):
            together.add(_tally(path, source))
    return transport_in(together, promised)


def transport_in(tally: Tally, promised: Network | None = None) -> Transport | None:
    """Return the transport of a tally; None without a line of NCCL."""
    seen = facts(tally)
    return verdict(seen, promised) if seen else None


def _tally(path: Path, source: str) -> Tally:
    reader = TransportReader(source)
    with open_log(path) as stream:
        for _ in dispatch(stream, (), whole=(reader,)):
            pass
    return reader.tally
