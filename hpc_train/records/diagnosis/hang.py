"""Timeouts of a collective on all ranks -> the rank that did not join it, or the cause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from hpc_train.model.value import Value
from hpc_train.records.diagnosis.collective_timeouts import Progress, Wait

# A job that hangs in one of its first collectives has never communicated.
_FIRST = 20
# Name of the group of all ranks.
_DEFAULT = "0"


class Hang(Value, frozen=True, kw_only=True):
    """The explanation of a collective that timed out; `late` are the ranks that did not join."""

    title: str
    cause: str
    advice: str
    late: tuple[int, ...] = ()


def explain_hang(
    waits: Sequence[Wait], progress: Sequence[Progress], ranks: int | None
) -> Hang | None:
    """Return the rank that the others waited for, if known; None without a timeout.

    `ranks` is the number of ranks of the job, if known.
    """
    first = _first_waits(waits)
    if not first:
        return None
    chief = min(first.values(), key=lambda wait: (wait.number is None, wait.number or 0))
    together = {rank: wait for rank, wait in first.items() if wait.number == chief.number}
    waited = _waited(chief, together)
    group = [one for one in progress if one.group == _group_of(chief, progress)]
    return (
        _mismatch(together)
        or _apart(chief, first, progress)
        or _behind(chief, group, set(together), waited)
        or _absent(first, group, ranks, waited)
        or _everyone(chief, set(first), group, ranks, waited)
    )


def _first_waits(waits: Iterable[Wait]) -> dict[int, Wait]:
    """Return the first wait of each rank: later ones repeat it, or belong to another group."""
    first: dict[int, Wait] = {}
    for wait in waits:
        first.setdefault(-1 if wait.rank is None else wait.rank, wait)
    return first


def _group_of(chief: Wait, progress: Sequence[Progress]) -> str:
    """Return the process group of the wait: only the next lines of the rank contain it."""
    own = [one for one in progress if one.rank == chief.rank]
    stuck = [one.group for one in own if one.stuck is not None and one.stuck == chief.number]
    rest = [one.group for one in own] or [one.group for one in progress]
    return next(iter(stuck or rest), "")


def _waited(chief: Wait, together: Mapping[int, Wait]) -> str:
    ranks = sorted(rank for rank in together if rank >= 0)
    who = f"{listed(ranks)} waited" if ranks else "A rank waited"
    long = f" {chief.ran_s:.0f} s" if chief.ran_s is not None else ""
    return f"{who}{long} in {_name(chief)}"


def _name(wait: Wait) -> str:
    return wait.op if wait.number is None else f"collective {wait.number} ({wait.op})"


def _mismatch(together: Mapping[int, Wait]) -> Hang | None:
    kinds: dict[str, list[int]] = defaultdict(list)
    for rank, wait in together.items():
        kinds[wait.op].append(rank)
    what = "other collectives"
    if len(kinds) < 2:
        # These collectives have equal sizes on all ranks; others may have different sizes.
        alike = [wait for wait in together.values() if wait.op.startswith(("ALLREDUCE", "BROAD"))]
        kinds = defaultdict(list)
        for rank, wait in together.items():
            if wait in alike and wait.sizes:
                kinds[f"{wait.op} of {wait.sizes}"].append(rank)
        what = "other sizes"
    if len(kinds) < 2:
        return None
    sides = "; ".join(f"{listed(sorted(ranks))}: {kind}" for kind, ranks in kinds.items())
    few = min(kinds.values(), key=len)
    number = next(iter(together.values())).number
    return Hang(
        title=f"The ranks called {what} at the same place ({number}): {sides}",
        cause="the program takes another way on some ranks (an `if rank`, a data-dependent branch, "
        "an uneven number of batches), so that their collectives do not fit together",
        advice="make every rank call the same collectives in the same order; "
        "TORCH_DISTRIBUTED_DEBUG=DETAIL names the first call that differs",
        late=tuple(sorted(few)),
    )


def _apart(chief: Wait, first: Mapping[int, Wait], progress: Sequence[Progress]) -> Hang | None:
    """Find the ranks that are in an earlier collective than the others."""
    mine = _group_of(chief, progress)
    ahead = [
        wait
        for wait in first.values()
        if wait.number != chief.number and _group_of(wait, progress) == mine
    ]
    if not ahead or None in (wait.number for wait in ahead):
        return None
    late = sorted(r for r, wait in first.items() if r >= 0 and wait.number == chief.number)
    others = sorted(wait.rank for wait in ahead if wait.rank is not None)
    if not late or len(late) > len(others):
        return None
    next_one = min(wait.number or 0 for wait in ahead)
    return Hang(
        title=f"{listed(late)} stood in {_name(chief)}, {listed(others).lower()} "
        f"{'was' if len(others) == 1 else 'were'} at {next_one} or later",
        cause="the ranks did not call the same number of collectives: one took fewer batches, left "
        "a loop early or skipped a step",
        advice=f"look at what {listed(late).lower()} did last; give all ranks the same number of "
        "batches (drop_last, a sampler that pads, join() of DistributedDataParallel)",
        late=tuple(late),
    )


def _behind(chief: Wait, group: Sequence[Progress], waiting: set[int], waited: str) -> Hang | None:
    """Find the ranks that had not enqueued the collective in which the others waited."""
    if chief.number is None:
        return None
    reached: dict[int, int] = {}
    for one in group:
        if one.rank is not None:
            reached[one.rank] = max(one.enqueued, reached.get(one.rank, one.enqueued))
    late = sorted(
        rank for rank, last in reached.items() if last < chief.number and rank not in waiting
    )
    if not late:
        return None
    last = max(reached[rank] for rank in late)
    return Hang(
        title=f"{waited}, and {listed(late).lower()} did not come: last enqueued {last}",
        cause="a rank does something else while the others communicate: slow reading or writing, "
        "evaluation or saving on one rank, an exception that is caught, a loop of another length",
        advice=f"look at what {listed(late).lower()} did last (py-spy dump, its own log); let all "
        "ranks take the same number of steps, or raise the timeout of init_process_group",
        late=tuple(late),
    )


def _absent(
    first: Mapping[int, Wait], group: Sequence[Progress], ranks: int | None, waited: str
) -> Hang | None:
    """Find the ranks that reported no timeout, if most of them did."""
    heard = {rank for rank in first if rank >= 0} | {
        one.rank for one in group if one.rank is not None
    }
    silent = sorted(set(range(ranks or 0)) - heard)
    # The members are known only for the group of all ranks.
    everybody = {one.group for one in group} <= {"", _DEFAULT}
    if not silent or len(silent) >= len(heard) or not everybody:
        return None
    return Hang(
        title=f"{waited}; {listed(silent).lower()} reported no timeout",
        cause="a rank that does not wait has not come: it died, hangs in its own code, or its node "
        "is gone",
        advice=f"look at the end of the log of {listed(silent).lower()} and at its node "
        "(dmesg, sacct, nvidia-smi)",
        late=tuple(silent),
    )


def _everyone(
    chief: Wait, heard: set[int], group: Sequence[Progress], ranks: int | None, waited: str
) -> Hang:
    most = max((one.completed for one in group), default=None)
    started = chief.number is not None and chief.number > _FIRST
    if ranks is not None and len(heard) < ranks:
        where = f"only {len(heard)} of {ranks} ranks {_are(heard)} in these logs, "
        where += "so who did not come is not known; "
    else:
        where = "all ranks wait in the same collective; "
    if not started and (most is None or most <= _FIRST):
        return Hang(
            title=f"{waited}, one of the first of the job: the ranks do not reach one another",
            cause=where + "at the start this is mostly the transport: IOMMU or ACS, a firewall, a "
            "wrong interface, peer access between GPUs, or a rank that never came so far",
            advice="run again with NCCL_DEBUG=INFO and look at the channels; try NCCL_P2P_DISABLE=1"
            " (one node) or NCCL_IB_DISABLE=1 (several), and set NCCL_SOCKET_IFNAME; without "
            "them again once the cause is found",
        )
    return Hang(
        title=f"{waited}, long after the start",
        cause=where + "after many good ones this is mostly a rank that is slow (reading, saving, "
        "evaluation) or a node or link that has died",
        advice="look for the rank that is late (py-spy dump, TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and "
        "TORCH_NCCL_DUMP_ON_TIMEOUT=1), for dead nodes (sacct, dmesg) and link errors; raise the "
        "timeout of init_process_group only for work that is known to be long",
    )


def _are(ranks: Collection[int]) -> str:
    return "is" if len(ranks) == 1 else "are"


def listed(ranks: Sequence[int]) -> str:
    """Return `Rank 3`, `Ranks 0-2, 5`."""
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and rank == parts[-1][-1] + 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    shown = [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in parts]
    more = f" and {len(shown) - 12} more" if len(shown) > 12 else ""
    return f"Rank{'s' * (len(ranks) != 1)} {', '.join(shown[:12])}{more}"
