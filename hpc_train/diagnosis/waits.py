"""Reports of PyTorch's watchdog on collectives that timed out, and on the progress of each rank.

All versions since 1.10 print two kinds of line: the collective that timed out (`WorkNCCL(…)`), and
the progress of the process group of a rank (`last enqueued … last completed …`). `[Rank r]` is the
rank within the group; the prefix of the line has the global rank.
"""

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


class Wait(NamedTuple):
    """A rank waited in a collective until its timeout; `sizes` are the elements in and out."""

    rank: int | None
    file: int
    line: int
    number: int | None
    op: str
    sizes: str
    ran_s: float | None = None


class Progress(NamedTuple):
    """The last collectives of a process group that a rank started, and that it completed.

    `stuck` is the collective that timed out, if the line names it.
    """

    rank: int | None
    file: int
    line: int
    group: str
    enqueued: int
    completed: int
    stuck: int | None


class CollectiveReader:
    """Finds both kinds of line in one log."""

    literals = (b"Watchdog caught collective operation timeout", b"ast enqueued ")
    wants_next = False

    def __init__(self, file: int = 0) -> None:
        self._file = file

    def read(self, line: Line) -> Iterator[Wait | Progress]:
        """Yield the timeout or the progress that a line reports."""
        text, place = line.text, (self._file, line.number)
        if wait := _WAIT.search(text):
            number, op, numel = wait["seq"], wait["op"], wait["numel_in"]
            ran, sizes = _RAN.search(text, wait.end()), f"{numel} in, {wait['numel_out']} out"
            yield Wait(
                *(_rank(line, wait), *place, None if number is None else int(number), op),
                *(sizes if numel else "", int(ran[1]) / 1000 if ran else None),
            )
        if last := _LAST.search(text):
            group, at = _GROUP.search(text), _AT.search(text)
            yield Progress(
                *(_rank(line, group), *place, group["group"] if group else ""),
                *(int(last["enqueued"]), int(last["completed"]), int(at[1]) if at else None),
            )


def _rank(line: Line, stated: re.Match[str] | None) -> int | None:
    """Return the global rank of a line, else that in a process group."""
    if line.rank is not None:
        return line.rank
    # Ray and other programs print their own name before that of PyTorch.
    named = _NAMED.search(line.text)
    rank = named[1] if named else stated and stated["rank"]
    return None if rank is None else int(rank)


# Dumps of torch's flight recorder: the last collectives of each rank, written after a timeout.
#
# torch writes one file for each rank, a pickle of dicts, lists, texts and numbers, or JSON
# (`FlightRecorder.hpp` of torch 2.13, version 2.10 of the format; `torchfrtrace` reads the same).
# A pickle may name any function, so that one which names any is refused.

# Of `$HPCTRAIN_LOG_DIR/nccl_trace_rank_`, to which torch adds the rank.
PATTERN = "nccl_trace_rank_*[0-9]"
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

    def __str__(self) -> str:
        """Return it with its sizes and its place."""
        place = f", called at {self.place}" if self.place else ""
        sizes = f" of {self.sizes}" if self.sizes else ""
        return f"collective {self.number} ({self.name}{sizes}{place})"


class FlightDump(Value, frozen=True, kw_only=True):
    """What one rank did last: its collectives, in order, and the global ranks of its groups.

    `enqueued` are the last numbers by group. `exchanging` is whether a send or receive of the rank
    had not ended; these have numbers of their own.
    """

    rank: int
    source: str
    operations: tuple[Operation, ...]
    enqueued: dict[str, int]
    groups: dict[str, tuple[int, ...]]
    exchanging: bool = False


def read_dump(path: Path, source: str) -> FlightDump:
    """Read the dump of one rank; `source` is its name in evidence.

    Raises:
        LogParseError: it is too large, damaged, or a pickle that names a function; or it cannot be
        read.
    """
    try:
        return _dump(read_regular(path, _MOST_BYTES), path.name, source)
    except OSError as error:
        raise LogParseError(f"{source}: it cannot be read: {error.strerror}") from error
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


def _dump(content: bytes, name: str, source: str) -> FlightDump:
    found = json.loads(content) if content[:1] == b"{" else _Plain(BytesIO(content)).load()
    operations, enqueued, exchanging = list[Operation](), dict[str, int](), False
    for entry in found.get("entries", ()):
        is_open = bool(entry["state"] != "completed" and not entry["retired"])
        if entry.get("is_p2p"):
            exchanging = exchanging or is_open
            continue
        # The innermost frame of the program: `train.py:42`.
        frames = ((str(one["filename"]), one["line"]) for one in entry.get("frames", ()))
        own = (one for one in frames if not any(folder in one[0] for folder in _TORCH))
        file, line = next(own, ("", 0))
        group, number = str(entry["process_group"][0]), int(entry["collective_seq_id"])
        operations.append(
            Operation(
                group=group,
                number=number,
                name=str(entry["profiling_name"]).rpartition(":")[2],
                sizes=", ".join("x".join(map(str, size)) or "1" for size in entry["input_sizes"]),
                open=is_open,
                place=f"{Path(file).name}:{line}" if file else "",
            )
        )
        enqueued[group] = max(number, enqueued.get(group, 0))
    return FlightDump(
        rank=int(name.rpartition("_")[2]),
        source=source,
        operations=tuple(operations),
        enqueued=enqueued,
        groups={
            str(name): tuple(map(int, re.findall(r"\d{1,7}", str(group["ranks"]))))
            for name, group in found["pg_config"].items()
        },
        exchanging=exchanging,
    )


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
    here, mine = sorted(rank for rank in together if rank >= 0), _group_of(chief, progress)
    ahead = [one for one in first.values() if one.number != chief.number]
    ahead = [one for one in ahead if _group_of(one, progress) == mine]
    group = [one for one in progress if one.group == mine]
    what = chief.op if chief.number is None else f"collective {chief.number} ({chief.op})"
    long = f" {chief.ran_s:.0f} s" if chief.ran_s is not None else ""
    waited = f"{listed(here) if here else 'A rank'} waited{long} in {what}"
    return (
        _mismatch(together)
        or _apart(here, ahead, what)
        or _behind(chief, group, here, waited)
        or _absent(first, group, ranks, waited)
        or _everyone(chief, len(first), group, ranks, waited)
    )


def _group_of(chief: Wait, progress: Sequence[Progress]) -> str:
    """Return the process group of the wait: only the next lines of the rank contain it."""
    own = [one for one in progress if one.rank == chief.rank]
    stuck = [one.group for one in own if one.stuck is not None and one.stuck == chief.number]
    rest = [one.group for one in own] or [one.group for one in progress]
    return next(iter(stuck or rest), "")


def _mismatch(together: Mapping[int, Wait]) -> Hang | None:
    """Find the ranks that called another collective, or one of another size."""
    operations, sizes = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
    for rank, wait in together.items():
        operations[wait.op].append(rank)
        # These collectives have equal sizes on all ranks; others may have different sizes.
        if wait.sizes and wait.op.startswith(("ALLREDUCE", "BROAD")):
            sizes[f"{wait.op} of {wait.sizes}"].append(rank)
    is_other = len(operations) > 1
    kinds, what = (operations, "other collectives") if is_other else (sizes, "other sizes")
    if len(kinds) < 2:
        return None
    sides = "; ".join(f"{listed(sorted(ranks))}: {kind}" for kind, ranks in kinds.items())
    few = min(kinds.values(), key=len)
    number = next(iter(together.values())).number
    return _hang("hang_mismatch", sorted(few), what=what, number=number, sides=sides)


def _apart(late: Sequence[int], ahead: Sequence[Wait], what: str) -> Hang | None:
    """Find the ranks that are in an earlier collective than the others."""
    numbers = [one.number for one in ahead if one.number is not None]
    others = sorted(one.rank for one in ahead if one.rank is not None)
    if len(numbers) < len(ahead) or not 0 < len(late) <= len(others):
        return None
    names = f"{listed(others).lower()} {'was' if len(others) == 1 else 'were'}"
    return _hang("hang_apart", late, ranks=listed(late), what=what, others=names, next=min(numbers))


def _behind(
    chief: Wait, group: Sequence[Progress], waiting: Sequence[int], waited: str
) -> Hang | None:
    """Find the ranks that had not enqueued the collective in which the others waited."""
    reached: dict[int, int] = {}
    for one in group if chief.number is not None else ():
        if one.rank is not None and one.rank not in waiting:
            reached[one.rank] = max(one.enqueued, reached.get(one.rank, one.enqueued))
    late = sorted(rank for rank, last in reached.items() if last < (chief.number or 0))
    if not late:
        return None
    return _hang("hang_behind", late, waited=waited, last=max(reached[rank] for rank in late))


def _absent(
    first: Mapping[int, Wait], group: Sequence[Progress], ranks: int | None, waited: str
) -> Hang | None:
    """Find the ranks that reported no timeout, if most of them did."""
    heard = {*first, *(one.rank for one in group)} - {-1, None}
    silent = sorted(set(range(ranks or 0)) - heard)
    # The members are known only for the group of all ranks.
    everybody = {one.group for one in group} <= {"", _DEFAULT}
    is_few = 0 < len(silent) < len(heard)
    return _hang("hang_absent", silent, waited=waited) if is_few and everybody else None


def _everyone(
    chief: Wait, heard: int, group: Sequence[Progress], ranks: int | None, waited: str
) -> Hang:
    where = "all ranks wait in the same collective; "
    if ranks is not None and heard < ranks:
        where = f"only {heard} of {ranks} ranks {'is' if heard == 1 else 'are'} in these logs, "
        where += "so it is not known which ranks are missing; "
    most = max((one.completed for one in group), default=0)
    is_first = most <= _FIRST and (chief.number or 0) <= _FIRST
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
    stuck = _stuck_in(dumps)
    if stuck is None:
        return None, ()
    group, number, waiting, late = stuck
    # What the ranks of the group would have printed of it, as the watchdog writes it: ALLREDUCE.
    waits, progress, words = list[Wait](), list[Progress](), list[Evidence]()
    for one in dumps:
        own, place = [op for op in one.operations if op.group == group], (one.rank, 0, 0)
        here = next((op for op in own if op.number == number), None)
        if here is not None:
            op = here.name.replace("_", "").upper()
            waits.append(Wait(*place, number=number, op=op, sizes=here.sizes))
        if one.rank in (*waiting, *late):
            last = one.enqueued.get(group, 0)
            progress.append(Progress(*place, group, last, completed=number - 1, stuck=number))
        if one.rank in late:
            text = f"its last was {own[-1]}" if own else "it enqueued none"
        elif one.rank in waiting[:1] and here is not None:
            text = f"it waited in {here}"
        else:
            continue
        text = f"flight recorder of rank {one.rank}, process group {group}: {text}"
        words.append(Evidence(source=one.source, line=0, text=text, rank=one.rank))
    hang = explain_hang(waits, progress, ranks)
    return (hang, tuple(words[:_SHOWN])) if hang and hang.late else (None, ())


class _Stuck(NamedTuple):
    """The collective `number` of a group, which the ranks `waiting` enqueued and `late` did not."""

    group: str
    number: int
    waiting: tuple[int, ...]
    late: tuple[int, ...]


def _stuck_in(dumps: Sequence[FlightDump]) -> _Stuck | None:
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


def _each_stuck(dumps: Sequence[FlightDump]) -> Iterator[_Stuck]:
    for group in dict.fromkeys(name for one in dumps for name in one.enqueued):
        members = [
            one for one in dumps if group in one.enqueued or one.rank in one.groups.get(group, ())
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
            yield _Stuck(group, number, waiting, tuple(sorted(set(reached) - set(waiting))))
