"""Sighting -> title, cause and advice, filled with the values of the line."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hpc_train.records.signatures.base import Explanation, Sighting, Signature
from hpc_train.records.signatures.exit_codes import ended
from hpc_train.records.signatures.gpu_out_of_memory import kind_of

_NAME = re.compile(r"\{(\w+)\}")
_UNKNOWN = "?"


def explain(signature: Signature, sighting: Sighting) -> Explanation:
    """Return the explanation of a sighting; values that the line does not state are `?`."""
    groups = dict(sighting.groups)
    told = Explanation(title=signature.title, cause=signature.cause, advice=signature.advice)
    if signature.by_memory and (kind := kind_of(groups)):
        told = signature.by_memory.get(kind, told)
    if signature.process:
        told = _how_it_ended(signature.process, groups) or told
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
        title=fill(told.title).rstrip(" :"), cause=fill(told.cause), advice=fill(told.advice)
    )


def _how_it_ended(process: str, groups: Mapping[str, str]) -> Explanation | None:
    """Return the explanation of the exit code that a launcher reports."""
    by_signal = groups.get("killed") or groups.get("number")
    code = f"-{by_signal}" if by_signal else groups.get("exitcode")
    if not code:
        return None
    end = ended(code)
    return Explanation(title=f"{process} {end.how}", cause=end.cause, advice=end.advice)
