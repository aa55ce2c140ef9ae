"""Sighting -> title, cause and advice, filled with the values of the line; exit codes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal

from hpc_train.model.value import Value
from hpc_train.records.signatures.base import Explanation, MemoryShortage, Sighting, Signature
from hpc_train.slurm_options import named_options, refusal_of
from hpc_train.typed_values import load_data

_NAME = re.compile(r"\{(\w+)\}")
_UNKNOWN = "?"
_SIZE = r"[\d.]{1,16} (?:[KMGTPE]i?B|bytes|B)\b"
_ONE = re.compile(_SIZE)
_UNITS = {"bytes": 1, "B": 1} | {
    f"{letter}{ending}": float(base**power)
    for power, letter in enumerate("KMGTPE", 1)
    for ending, base in (("iB", 1024), ("B", 1000))
}
# A smaller fraction of the GPU's memory is not the cause.
_SMALL = 0.05
_ROUNDING = 1.02


class Ended(Value, frozen=True, kw_only=True):
    """How a process ended, in words; `how` continues a sentence after the name of the process."""

    how: str
    cause: str
    advice: str


class _Codes(Ended, frozen=True, kw_only=True):
    """The meaning of some codes; `crash`: a signal that is not sent to end a job."""

    codes: tuple[str, ...]
    crash: bool = False


class _File(Value, frozen=True, kw_only=True):
    schema: Literal[1]
    exit_codes: tuple[_Codes, ...]
    other: Ended


@cache
def _file() -> _File:
    return load_data("exit_codes.yaml", _File)


@cache
def _by_code() -> dict[str, _Codes]:
    return {code: row for row in _file().exit_codes for code in row.codes}


def ended(exit_code: str) -> Ended:
    """Return what an exit code means."""
    known = _by_code().get(exit_code)
    if known is not None:
        return known
    other = _file().other
    return Ended(
        how=other.how.replace("{exit_code}", exit_code),
        cause=other.cause,
        advice=other.advice.replace("{exit_code}", exit_code),
    )


def is_crash(exit_code: str) -> bool:
    """Whether a process was killed or crashed without a message."""
    known = _by_code().get(exit_code)
    return known is not None and known.crash


def explain(signature: Signature, sighting: Sighting) -> Explanation:
    """Return the explanation of a sighting; values that the line does not state are `?`."""
    groups = dict(sighting.groups)
    explanation = Explanation(title=signature.title, cause=signature.cause, advice=signature.advice)
    if signature.by_memory and (kind := kind_of(groups)):
        explanation = signature.by_memory.get(kind, explanation)
    if "refused" in groups and (refusal := refusal_of(groups["refused"])):
        named = named_options(groups["refused"])
        about = f" (--{named[0]})" if len(named) == 1 else ""
        meaning = f"Slurm refused the job: {refusal.meaning}{about}"
        advice = refusal.advice or signature.advice
        explanation = Explanation(title=meaning, cause=groups["refused"], advice=advice)
    if signature.process:
        explanation = _how_it_ended(signature.process, groups) or explanation
    rank = groups.get("rank") if sighting.rank is None else sighting.rank
    groups["of_rank"] = "" if rank is None else f" of rank {rank}"
    if sighting.node:
        groups.setdefault("node", sighting.node)
    # Messages of old PyTorch versions contain only the total of reserved memory.
    groups.setdefault("unused", groups.get("reserved", _UNKNOWN))
    groups.setdefault("message", groups.get("code", ""))
    tasks = groups.get("tasks", "")
    groups["these_tasks"] = f"Task{'' if tasks.isdecimal() else 's'} {tasks}"

    def fill(text: str) -> str:
        filled = _NAME.sub(lambda name: groups.get(name[1], _UNKNOWN).rstrip(), text)
        return filled.replace("  ", " ")

    return Explanation(
        title=fill(explanation.title).rstrip(" :"),
        cause=fill(explanation.cause),
        advice=fill(explanation.advice),
    )


def _how_it_ended(process: str, groups: Mapping[str, str]) -> Explanation | None:
    """Return the explanation of the exit code that a launcher reports."""
    by_signal = groups.get("killed") or groups.get("number")
    code = f"-{by_signal}" if by_signal else groups.get("exitcode")
    if not code:
        return None
    end = ended(code)
    return Explanation(title=f"{process} {end.how}", cause=end.cause, advice=end.advice)


def size(text: str) -> float:
    """Return the bytes of `1.5 GiB`; 0 if the text is not a size."""
    number, _, unit = text.partition(" ")
    try:
        return float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        return 0.0


def _others(groups: Mapping[str, str], own: float, taken: float) -> float:
    """Return how many of the `taken` bytes other processes hold; this one holds at least `own`."""
    sizes = [size(text) for text in _ONE.findall(groups.get("others", ""))]
    # In a container, PyTorch cannot determine which of the processes is its own.
    if "used" not in groups and sum(sizes) + own > _ROUNDING * taken:
        sizes.sort()
        itself = next((held for held in sizes if held * _ROUNDING >= own), 0.0)
        return sum(sizes) - itself
    return sum(sizes)


def kind_of(groups: Mapping[str, str]) -> MemoryShortage | None:
    """Return the cause of the memory shortage, from the groups of `cuda_oom`; None if unknown."""
    tried, total, free, allocated, unused, reserved = (
        size(groups.get(name, ""))
        for name in ("tried", "total", "free", "allocated", "unused", "reserved")
    )
    if not total or not allocated:
        return None
    unused = unused or max(reserved - allocated, 0.0)
    others = _others(groups, allocated + unused, total - free)
    if others >= _SMALL * total and others + free >= tried and others > unused:
        return "other_processes"
    if unused >= _SMALL * total and unused + free >= tried:
        return "fragmentation"
    return "full"
