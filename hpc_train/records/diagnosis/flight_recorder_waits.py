"""Dumps of torch's flight recorder -> the collective that did not end, and who waited in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from hpc_train.model.diagnosis import Evidence
from hpc_train.model.value import Value
from hpc_train.records.diagnosis.collective_timeouts import Progress, Wait
from hpc_train.records.diagnosis.flight_recorder import FlightDump, Operation
from hpc_train.records.diagnosis.hang import Hang, explain_hang

# Lines of a finding that show what late ranks did last.
_SHOWN = 4


def explain_dumps(
    dumps: Sequence[FlightDump], ranks: int | None
) -> tuple[Hang | None, tuple[Evidence, ...]]:
    """Return which rank the others waited for, and its last collective; None if they do not tell.

    `ranks` is the number of ranks of the job, if known.
    """
    stuck = stuck_in(dumps)
    if stuck is None:
        return None, ()
    hang = explain_hang(*waits_of(dumps, stuck), ranks)
    if hang is None or not hang.late:
        return None, ()
    return hang, tuple(last_words(dumps, stuck))[:_SHOWN]


class Stuck(Value, frozen=True, kw_only=True):
    """The collective `number` of a group, which the ranks `waiting` enqueued and `late` did not."""

    group: str
    number: int
    waiting: tuple[int, ...]
    late: tuple[int, ...]


def stuck_in(dumps: Sequence[FlightDump]) -> Stuck | None:
    """Return the collective to blame: one whose late ranks wait for nothing, where there is one.

    A rank that is late in one group because it waits in another is a victim, too, and so is one
    that waits for a send or receive: it is not among `late`. Without another late rank, the dumps
    do not tell: None.
    """
    found = list(_each_stuck(dumps))
    exchanging = {one.rank for one in dumps if one.exchanging}
    busy = exchanging | {one.rank for one in dumps if any(op.open for op in one.operations)}
    stuck = min(found, key=lambda one: (not one.late, bool(busy & set(one.late))), default=None)
    if stuck is None or not exchanging & set(stuck.late):
        return stuck
    late = tuple(rank for rank in stuck.late if rank not in exchanging)
    return replace(stuck, late=late) if late else None


def _each_stuck(dumps: Sequence[FlightDump]) -> Iterator[Stuck]:
    for group in dict.fromkeys(name for one in dumps for name in one.enqueued):
        members = [one for one in dumps if group in one.enqueued or one.rank in _ranks(one, group)]
        reached = {one.rank: one.enqueued.get(group, 0) for one in members}
        every = min(reached.values())
        ended = _ended(members, group)
        left = (one for one in _open(members, group) if one > every or one not in ended)
        number = min(left, default=every + 1)
        waiting = tuple(sorted(rank for rank, last in reached.items() if last >= number))
        if waiting:
            late = tuple(sorted(set(reached) - set(waiting)))
            yield Stuck(group=group, number=number, waiting=waiting, late=late)


def _ranks(dump: FlightDump, group: str) -> tuple[int, ...]:
    return dump.groups[group][1] if group in dump.groups else ()


def _open(dumps: Sequence[FlightDump], group: str) -> Iterator[int]:
    for one in dumps:
        yield from (op.number for op in one.operations if op.open and op.group == group)


def _ended(dumps: Sequence[FlightDump], group: str) -> set[int]:
    """Return the collectives that ended on a rank: where all take part, they end on the others.

    A rank notes the end of a collective a while after it.
    """
    return {
        op.number for one in dumps for op in one.operations if op.group == group and not op.open
    }


def waits_of(
    dumps: Sequence[FlightDump], stuck: Stuck
) -> tuple[tuple[Wait, ...], tuple[Progress, ...]]:
    """Return what the ranks of the group would have printed of it."""
    waits, progress = [], []
    for dump in dumps:
        operation = operation_of(dump, stuck)
        if operation is not None:
            waits.append(_wait(dump, operation))
        if dump.rank in (*stuck.waiting, *stuck.late):
            progress.append(
                Progress(
                    rank=dump.rank,
                    group=stuck.group,
                    enqueued=dump.enqueued.get(stuck.group, 0),
                    completed=stuck.number - 1,
                    stuck=stuck.number,
                    source=dump.source,
                    line=0,
                )
            )
    return tuple(waits), tuple(progress)


def _wait(dump: FlightDump, operation: Operation) -> Wait:
    return Wait(
        rank=dump.rank,
        number=operation.number,
        # As the watchdog writes it: ALLREDUCE.
        op=operation.name.replace("_", "").upper(),
        sizes=operation.sizes,
        ran_s=None,
        source=dump.source,
        line=0,
    )


def operation_of(dump: FlightDump, stuck: Stuck) -> Operation | None:
    """Return the collective as one rank enqueued it."""
    for one in dump.operations:
        if (one.group, one.number) == (stuck.group, stuck.number):
            return one
    return None


def last_words(dumps: Sequence[FlightDump], stuck: Stuck) -> Iterator[Evidence]:
    """Yield the last collective of each late rank, and that of the first one that waited."""
    for dump in dumps:
        if dump.rank in stuck.late:
            own = [one for one in dump.operations if one.group == stuck.group]
            text = f"its last was {_named(own[-1])}" if own else "it enqueued none"
        elif dump.rank in stuck.waiting[:1] and (operation := operation_of(dump, stuck)):
            text = f"it waited in {_named(operation)}"
        else:
            continue
        text = f"flight recorder of rank {dump.rank}, process group {stuck.group}: {text}"
        yield Evidence(source=dump.source, line=0, text=text, rank=dump.rank)


def _named(operation: Operation) -> str:
    place = f", called at {operation.place}" if operation.place else ""
    sizes = f" of {operation.sizes}" if operation.sizes else ""
    return f"collective {operation.number} ({operation.name}{sizes}{place})"
