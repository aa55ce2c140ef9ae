"""Records -> a warning if every process of a benchmark ran a separate test."""

from __future__ import annotations

from collections.abc import Iterable

from hpc_train.model.record import Record

_WHY = (
    "every process of nccl-tests ran a separate test, nothing was measured between them; "
    "build it with MPI=1 and start it with `srun --mpi=pmix` or mpirun"
)


def is_apart(record: Record) -> bool:
    """Whether a record shows that a process of a benchmark was connected to no other."""
    return record.metric == "world_size" and record.variant == "apart"


def apart_warnings(records: Iterable[Record]) -> tuple[str, ...]:
    """Return a warning that names the first run and its place, if there is one."""
    first: dict[str, Record] = {}
    for record in records:
        if is_apart(record):
            first.setdefault(record.run, record)
    if not first:
        return ()
    run, record = next(iter(first.items()))
    more = f" and {len(first) - 1} more" if len(first) > 1 else ""
    return (f"{run}{more}: {_WHY} ({record.source}:{record.line})",)
