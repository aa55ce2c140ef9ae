"""Sighting -> what to tell of it: title, cause and advice, with what the line itself states."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hpc_train.model.value import Value
from hpc_train.records.signatures.base import Sighting, Signature
from hpc_train.records.signatures.exits import ended
from hpc_train.records.signatures.oom import Kind, kind_of

_NAME = re.compile(r"\{(\w+)\}")
_UNKNOWN = "?"


class Explanation(Value, frozen=True, kw_only=True):
    """What happened, why, and what to do."""

    title: str
    cause: str
    advice: str


_OUT_OF_MEMORY: Mapping[Kind, Explanation] = {
    "full": Explanation(
        title="GPU {gpu}{of_rank} ran out of memory: {allocated} of {total} are held by PyTorch"
        " itself, {tried} more were asked for",
        cause="The model, its optimiser state and its activations need more than the GPU has.",
        advice="Smaller micro-batch, activation checkpointing, more sharding (FSDP, ZeRO, tensor"
        " parallel).",
    ),
    "fragmentation": Explanation(
        title="GPU {gpu}{of_rank} ran out of memory in one piece: {unused} are reserved, but no"
        " part of it has room for {tried}",
        cause="Tensors of changing sizes leave holes in the memory that PyTorch has reserved.",
        advice="PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; batches of one length; no"
        " allocation in each step.",
    ),
    "other_processes": Explanation(
        title="GPU {gpu}{of_rank} is filled by other processes: {others}",
        cause="Several ranks use this GPU, somebody else does, or a process is left over from"
        " another job.",
        advice="`nvidia-smi` on the node; torch.cuda.set_device(LOCAL_RANK) and"
        " map_location for torch.load; whole GPUs (--exclusive); ask the site to end what is left.",
    ),
}


_PROCESSES: Mapping[str, str] = {
    "torchrun_child_failed_rank": "Rank {rank}",
    "torchrun_process_failed": "The process with local rank {local_rank}",
    "deepspeed_process_failed": "A process of DeepSpeed's launcher",
    "lightning_process_failed": "A process of Lightning's launcher",
    "mpi_rank_signalled": "Rank {rank} on {node}",
}


def explain(signature: Signature, sighting: Sighting) -> Explanation:
    """Return what the catalogue says of a sighting; what the line does not state is `?`."""
    groups = dict(sighting.groups)
    told = Explanation(title=signature.title, cause=signature.cause, advice=signature.advice)
    if signature.id == "cuda_oom":
        told = _OUT_OF_MEMORY.get(kind_of(groups), told)
    if signature.id in _PROCESSES:
        told = _how_it_ended(_PROCESSES[signature.id], groups) or told
    rank = groups.get("rank") if sighting.rank is None else sighting.rank
    groups["of_rank"] = "" if rank is None else f" of rank {rank}"
    if sighting.node:
        groups.setdefault("node", sighting.node)
    # PyTorch's old texts state what is reserved in total only.
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
    """Return what the code says with which a launcher saw a process end."""
    by_signal = groups.get("killed") or groups.get("number")
    code = f"-{by_signal}" if by_signal else groups.get("exitcode")
    if not code:
        return None
    end = ended(code)
    return Explanation(title=f"{process} {end.how}", cause=end.cause, advice=end.advice)
