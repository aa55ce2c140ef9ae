"""Reports of PyTorch's watchdog on collectives that timed out, and on the progress of each rank.

All versions since 1.10 print two kinds of line: the collective that timed out (`WorkNCCL(…)`), and
the progress of the process group of a rank (`last enqueued … last completed …`). `[Rank r]` is the
rank within the group; the prefix of the line has the global rank.
"""

from __future__ import annotations

import json
import pickle
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from hpc_train.base.errors import LogParseError
from hpc_train.base.files import read_regular
from hpc_train.base.values import Value
from hpc_train.diagnosis.diagnosis import Evidence
from hpc_train.diagnosis.signatures import Explanation, concluded
from hpc_train.logs.line import Line

_WAIT = re.compile(
    r"(?:\[Rank (?P<rank>\d{1,7})\] )?Watchdog caught collective operation timeout: "
    r"Work\w{1,12}\((?:SeqNum=(?P<seq>\d{1,12}), )?OpType=(?P<op>\w{1,60})"
    r"(?:, (?:Tensor|NumelIn=(?P<numel_in>\d{1,15}), NumelOut=(?P<numel_out>\d{1,15})))?"
)
_RAN = re.compile(r"ran for (\d{1,12}) milliseconds")
_GROUP = re.compile(
    r"\[PG (?:ID \S{1,80} PG GUID )?(?P<group>[^\s()\]]{1,80}) ?(?:\([^)\]]{0,80}\))? "
    r"?Rank (?P<rank>\d{1,7})\]"
)
_LAST = re.compile(
    r"[Ll]ast enqueued (?:NCCL )?work: (?P<enqueued>-?\d{1,12}), "
    r"(?:last started (?:NCCL )?work: [^,]{1,80}, )?"
    r"last completed (?:NCCL )?work: (?P<completed>-?\d{1,12})"
)
_NAMED = re.compile(r"\[rank(\d{1,7})\]:")
_AT = re.compile(r"(?:at work(?: sequence id)?|at NCCL work): (\d{1,12})")


class Wait(Value, frozen=True, kw_only=True):
    """A rank waited in a collective until its timeout; `sizes` are the elements in and out."""

    rank: int | None
    number: int | None
    op: str
    sizes: str
    ran_s: float | None
    source: str
    line: int


class Progress(Value, frozen=True, kw_only=True):
    """The last collectives of a process group that a rank started, and that it completed.

    `stuck` is the collective that timed out, if the line names it.
    """

    rank: int | None
    group: str
    enqueued: int
    completed: int
    stuck: int | None
    source: str
    line: int


class CollectiveReader:
    """Finds both kinds of line in one log."""

    literals = (b"Watchdog caught collective operation timeout", b"ast enqueued ")
    wants_next = False

    def __init__(self, source: str = "") -> None:
        self._source = source

    def read(self, line: Line) -> Iterator[Wait | Progress]:
        """Yield the timeout or the progress that a line reports."""
        text = line.text
        if wait := _WAIT.search(text):
            ran, numel = _RAN.search(text, wait.end()), wait["numel_in"]
            yield Wait(
                rank=_rank(line, wait["rank"]),
                number=None if wait["seq"] is None else int(wait["seq"]),
                op=wait["op"],
                sizes=f"{numel} in, {wait['numel_out']} out" if numel else "",
                ran_s=int(ran[1]) / 1000 if ran else None,
                source=self._source,
                line=line.number,
            )
        if last := _LAST.search(text):
            group, at = _GROUP.search(text), _AT.search(text)
            yield Progress(
                rank=_rank(line, group["rank"] if group else None),
                group=group["group"] if group else "",
                enqueued=int(last["enqueued"]),
                completed=int(last["completed"]),
                stuck=int(at[1]) if at else None,
                source=self._source,
                line=line.number,
            )


def _rank(line: Line, stated: str | None) -> int | None:
    if line.rank is not None:
        return line.rank
    # Ray and other programs print their own name before that of PyTorch.
    named = _NAMED.search(line.text)
    rank = named[1] if named else stated
    return None if rank is None else int(rank)


# Dumps of torch's flight recorder: the last collectives of each rank, written after a timeout.
#
# torch writes one file for each rank, a pickle of dicts, lists, texts and numbers, or JSON
# (`FlightRecorder.hpp` of torch 2.13, version 2.10 of the format; `torchfrtrace` reads the same).
# A pickle may name any function, so that one which names any is refused.

# Of `$HPCTRAIN_LOG_DIR/nccl_trace_rank_`, to which torch adds the rank.
PATTERN = "nccl_trace_rank_*[0-9]"
_RANK = re.compile(r"_(\d{1,7})\Z")
# 2000 operations with their stacks are a few MB.
_MOST_BYTES = 64 << 20
_TORCH = ("/torch/", "/site-packages/")


class Operation(Value, frozen=True, kw_only=True):
    """A collective that a rank enqueued: `sizes` are the shapes of its inputs.

    `open` is whether it had neither ended nor been retired. `place` is where the program called it.
    """

    group: str
    number: int
    name: str
    sizes: str
    open: bool
    place: str


class FlightDump(Value, frozen=True, kw_only=True):
    """What one rank did last: its collectives, in order; the last number that it enqueued by group.

    `groups` are the process groups by name, as their descriptions and global ranks. `exchanging` is
    whether a send or receive of the rank had not ended; these have numbers of their own.
    """

    rank: int
    source: str
    operations: tuple[Operation, ...]
    enqueued: dict[str, int]
    groups: dict[str, tuple[str, tuple[int, ...]]]
    exchanging: bool = False


def read_dump(path: Path, source: str) -> FlightDump:
    """Read the dump of one rank; `source` is its name in evidence.

    Raises:
        LogParseError: it is no such dump, too large, or a pickle that names a function; or it
        cannot be read.
    """
    number = _RANK.search(path.name)
    if number is None:
        raise LogParseError(f"{source}: no dump of torch's flight recorder: its name has no rank")
    try:
        content = read_regular(path, _MOST_BYTES)
    except OSError as error:
        raise LogParseError(f"{source}: it cannot be read: {error.strerror}") from error
    try:
        return _dump(content, int(number[1]), source)
    except _FunctionError as error:
        raise LogParseError(f"{source}: no dump of torch's flight recorder: {error}") from error
    except _DAMAGED as error:
        raise LogParseError(
            f"{source}: this dump of torch's flight recorder is damaged, or its rank was ended "
            "before all of it was written; it is left out"
        ) from error


# What a damaged pickle or JSON raises, and values of another form.
_DAMAGED = (
    pickle.UnpicklingError, ArithmeticError, AttributeError, EOFError, LookupError, MemoryError,
    RecursionError, TypeError, ValueError,
)  # fmt: skip


class _FunctionError(pickle.UnpicklingError):
    """A pickle that names a function."""


class _Plain(pickle.Unpickler):
    """Makes dicts, lists, tuples, texts and numbers, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        raise _FunctionError(f"it names {module}.{name}, which is not loaded")


def _dump(content: bytes, rank: int, source: str) -> FlightDump:
    found = json.loads(content) if content[:1] == b"{" else _Plain(BytesIO(content)).load()
    entries = found.get("entries", ())
    operations = tuple(
        Operation(
            group=str(entry["process_group"][0]),
            number=int(entry["collective_seq_id"]),
            name=str(entry["profiling_name"]).rpartition(":")[2],
            sizes=", ".join("x".join(map(str, size)) or "1" for size in entry["input_sizes"]),
            open=_is_open(entry),
            place=_place(entry.get("frames", ())),
        )
        for entry in entries
        if not entry.get("is_p2p")
    )
    enqueued: dict[str, int] = {}
    for one in operations:
        enqueued[one.group] = max(one.number, enqueued.get(one.group, 0))
    return FlightDump(
        rank=rank,
        source=source,
        operations=operations,
        enqueued=enqueued,
        groups={
            str(name): (
                str(group["desc"]),
                tuple(int(word) for word in re.findall(r"\d{1,7}", str(group["ranks"]))),
            )
            for name, group in found["pg_config"].items()
        },
        exchanging=any(_is_open(entry) for entry in entries if entry.get("is_p2p")),
    )


def _is_open(entry: Mapping[str, Any]) -> bool:
    return bool(entry["state"] != "completed" and not entry["retired"])


def _place(frames: Sequence[Mapping[str, Any]]) -> str:
    """Return the innermost frame of the program: `train.py:42`."""
    for frame in frames:
        file = str(frame["filename"])
        if not any(folder in file for folder in _TORCH):
            return f"{Path(file).name}:{frame['line']}"
    return ""


# Timeouts of a collective on all ranks -> the rank that did not join it, or the cause.

# A job that hangs in one of its first collectives has never communicated.
_FIRST = 20
# Name of the group of all ranks.
_DEFAULT = "0"


class Hang(Explanation, frozen=True, kw_only=True):
    """The explanation of a collective that timed out; `late` are the ranks that did not join."""

    late: tuple[int, ...] = ()


def _hang(name: str, late: Sequence[int] = (), **stated: object) -> Hang:
    why = concluded(name, of_late=listed(late).lower(), **stated)
    return Hang(title=why.title, cause=why.cause, advice=why.advice, late=tuple(late))


def explain_hang(
    waits: Sequence[Wait], progress: Sequence[Progress], ranks: int | None
) -> Hang | None:
    """Return the rank that the others waited for, if known; None without a timeout.

    `ranks` is the number of ranks of the job, if known.
    """
    # Later waits of a rank repeat the first one, or belong to another group.
    first: dict[int, Wait] = {}
    for wait in waits:
        first.setdefault(-1 if wait.rank is None else wait.rank, wait)
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
    return _hang("hang_mismatch", sorted(few), what=what, number=number, sides=sides)


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
    verb = "was" if len(others) == 1 else "were"
    return _hang(
        "hang_apart",
        late,
        ranks=listed(late),
        what=_name(chief),
        others=f"{listed(others).lower()} {verb}",
        next=min(wait.number or 0 for wait in ahead),
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
    return _hang("hang_behind", late, waited=waited, last=max(reached[rank] for rank in late))


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
    return _hang("hang_absent", silent, waited=waited)


def _everyone(
    chief: Wait, heard: set[int], group: Sequence[Progress], ranks: int | None, waited: str
) -> Hang:
    most = max((one.completed for one in group), default=None)
    started = chief.number is not None and chief.number > _FIRST
    if ranks is not None and len(heard) < ranks:
        verb = "is" if len(heard) == 1 else "are"
        where = f"only {len(heard)} of {ranks} ranks {verb} in these logs, "
        where += "so who did not come is not known; "
    else:
        where = "all ranks wait in the same collective; "
    is_first = not started and (most is None or most <= _FIRST)
    return _hang("hang_at_start" if is_first else "hang_later", waited=waited, where=where)


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


# Dumps of torch's flight recorder -> the collective that did not end, and who waited in it.

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


class Stuck(NamedTuple):
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
    exchanging = {one.rank for one in dumps if one.exchanging}
    busy = exchanging | {one.rank for one in dumps if any(op.open for op in one.operations)}
    stuck = min(
        _each_stuck(dumps),
        key=lambda one: (not one.late, bool(busy & set(one.late))),
        default=None,
    )
    if stuck is None or not exchanging & set(stuck.late):
        return stuck
    late = tuple(rank for rank in stuck.late if rank not in exchanging)
    return stuck._replace(late=late) if late else None


def _each_stuck(dumps: Sequence[FlightDump]) -> Iterator[Stuck]:
    for group in dict.fromkeys(name for one in dumps for name in one.enqueued):
        members = [
            one
            for one in dumps
            if group in one.enqueued or one.rank in one.groups.get(group, ("", ()))[1]
        ]
        reached = {one.rank: one.enqueued.get(group, 0) for one in members}
        every = min(reached.values())
        own = [op for one in members for op in one.operations if op.group == group]
        # Where all take part, a collective that ended on a rank ends on the others, which note it
        # a while later.
        ended = {op.number for op in own if not op.open}
        left = {op.number for op in own if op.open}
        number = min((n for n in left if n > every or n not in ended), default=every + 1)
        waiting = tuple(sorted(rank for rank, last in reached.items() if last >= number))
        if waiting:
            yield Stuck(group, number, waiting, tuple(sorted(set(reached) - set(waiting))))


def waits_of(
    dumps: Sequence[FlightDump], stuck: Stuck
) -> tuple[tuple[Wait, ...], tuple[Progress, ...]]:
    """Return what the ranks of the group would have printed of it."""
    waits = tuple(
        Wait(
            rank=dump.rank,
            number=operation.number,
            # As the watchdog writes it: ALLREDUCE.
            op=operation.name.replace("_", "").upper(),
            sizes=operation.sizes,
            ran_s=None,
            source=dump.source,
            line=0,
        )
        for dump in dumps
        if (operation := operation_of(dump, stuck)) is not None
    )
    progress = tuple(
        Progress(
            rank=dump.rank,
            group=stuck.group,
            enqueued=dump.enqueued.get(stuck.group, 0),
            completed=stuck.number - 1,
            stuck=stuck.number,
            source=dump.source,
            line=0,
        )
        for dump in dumps
        if dump.rank in (*stuck.waiting, *stuck.late)
    )
    return waits, progress


def operation_of(dump: FlightDump, stuck: Stuck) -> Operation | None:
    """Return the collective as one rank enqueued it."""
    wanted = (stuck.group, stuck.number)
    return next((one for one in dump.operations if (one.group, one.number) == wanted), None)


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
