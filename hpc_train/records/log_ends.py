"""Foreign logs -> final states and transports of their jobs, in one pass."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from hpc_train.errors import LogParseError
from hpc_train.model.diagnosis import Diagnosis, JobEnd
from hpc_train.model.transport import Transport
from hpc_train.records.nccl.counts import Tally
from hpc_train.records.nccl.read_transport import transport_in
from hpc_train.records.read_log import Log


class LogEnd(NamedTuple):
    """Transport of one run from its logs and, if the run failed, the reason."""

    transport: Transport | None
    failure: str = ""


def log_ends(
    runs: Mapping[str, Sequence[Log]], unreadable: Container[str] = ()
) -> dict[str, LogEnd]:
    """Return the end of each run; `unreadable` logs are skipped."""
    return {
        run: _end([log for log in logs if log.source not in unreadable])
        for run, logs in runs.items()
    }


def _end(logs: Sequence[Log]) -> LogEnd:
    # Tables and records need no diagnosis, and its signatures are slow to load.
    from hpc_train.records.diagnosis.diagnose import diagnose_logs

    tally = Tally()
    names = [log.source for log in logs]
    try:
        found, _ = diagnose_logs([log.path for log in logs], names, JobEnd(), tally)
    except LogParseError:
        return LogEnd(transport_in(tally))
    return LogEnd(transport_in(tally), _failure(found) if found.outcome == "failed" else "")


def _failure(found: Diagnosis) -> str:
    if found.root is None:
        return found.why
    said = found.root.evidence[:1]
    where = f" ({said[0].source}:{said[0].line})" if said and said[0].line else ""
    return f"{found.root.title}{where}"
