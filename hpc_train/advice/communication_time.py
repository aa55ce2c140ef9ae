"""Bytes that a rank sends, and links -> the seconds of a step's communication, within bounds.

Nothing is faster than the links: within a node that of a GPU, between nodes the adapters of a node
with each part sent once (a hierarchical algorithm). A healthy ring reaches at least seven tenths of
the slower one, beside the latency of each call: 1.5 times that of NCCL's own model for a ring
(NVIDIA/nccl, src/graph/tuning.cc: 8.4 us, 3.4 us for each hop in a node, 14 us between nodes).
"""

from __future__ import annotations

import math

from hpc_train.model.machine_size import MachineSize
from hpc_train.model.program_size import ProgramSize
from hpc_train.model.training_strategies import TrainingRequest
from hpc_train.model.value_range import Range, exactly

GIGA = 1e9
_BUCKET = 25 * 2.0**20
_REACHED_IN_NODE, _REACHED = 0.65, 0.7
# NVLink SHARP adds inside the switch: an all-reduce sends about half; from Hopper on.
_IN_SWITCH, _IN_SWITCH_FROM = 1.75, 450.0
_US = 1e-6


def communication_time(
    request: TrainingRequest, sent: float | None, program: ProgramSize, machine: MachineSize
) -> Range:
    """Return the seconds of a step in which a rank sends `sent` bytes, if nothing else happens."""
    if request.world_size == 1 or sent == 0:
        return exactly(0.0)
    if sent is None or not machine.gpus_per_node:
        return Range()
    nodes = machine.nodes(request.world_size)
    return Range(
        low=_least(request, sent, machine, nodes), high=_most(request, sent, program, machine)
    )


def _least(request: TrainingRequest, sent: float, machine: MachineSize, nodes: int) -> float:
    ranks, link = request.world_size, machine.gpu_link
    # Each rank sends (n-1)/n of an array.
    array = sent * ranks / (ranks - 1)
    local = min(ranks, machine.gpus_per_node)
    seconds = 0.0
    if link and local > 1:
        faster = _IN_SWITCH if link >= _IN_SWITCH_FROM else 1.0
        seconds = array * (local - 1) / local / (link * faster * GIGA)
    if nodes > 1 and machine.node_link and request.strategy not in ("tensor", "pipeline", "naive"):
        between = array * (nodes - 1) / nodes / (machine.node_link * GIGA)
        seconds = max(seconds, between)
    return seconds


def _most(
    request: TrainingRequest, sent: float, program: ProgramSize, machine: MachineSize
) -> float | None:
    nodes = machine.nodes(request.world_size)
    crossed = [machine.gpu_link] if machine.gpus_per_node > 1 else []
    crossed += [machine.node_link] if nodes > 1 else []
    known = [link for link in crossed if link]
    if len(known) < len(crossed):
        return None
    slowest = min(known)
    reached = _REACHED if nodes > 1 else _REACHED_IN_NODE
    waits = _calls(request, program) * _latency(request.world_size, nodes)
    return sent / (reached * slowest * GIGA) + waits


def _calls(request: TrainingRequest, program: ProgramSize) -> float:
    """Return the collectives of a step."""
    gradients = math.ceil(4.0 * (program.parameters or 0) / _BUCKET) + 1
    blocks = program.shape.blocks if program.shape else gradients
    return {
        "ddp": gradients,
        "zero1": 2 * gradients,
        "tensor": 8 * blocks + 4,
        "context": 4 * blocks + gradients,
        "pipeline": 4 * request.microbatches,
        "naive": 4,
    }.get(request.strategy, 4 * (blocks + 2))


def _latency(ranks: int, nodes: int) -> float:
    inside = 2 * (ranks - 1) - 2 * (nodes - 1)
    return 1.5 * _US * (8.4 + 3.4 * inside + 14.0 * 2 * (nodes - 1))
