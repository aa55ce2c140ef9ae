"""Sizes that Megatron prints beside its iterations: of the job, the model and the memory.

| line | metric | scope |
|---|---|---|
| `global_batch_size ..... 8` and other arguments and banners | the argument | global |
| ` > number of parameters on (tensor, pipeline) ... (0, 1): 5120` | parameters | per rank |
| `[Rank 3] (after 20 iterations) memory (MB) \\| ...` | memory | per rank |

Parameters: one line for each model-parallel rank, printed by rank 0 of its data-parallel group; the
variant is `tensor 0, pipeline 1`. Memory: once per run; the first releases name no rank. `MB` are
MiB, the newer `GB` (`mem-max-allocated-gigabytes`) are 1e9 B. Of memory, only the maxima that
tensors (`allocated`) and the allocator (`reserved`) held are read; current values are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.records.parsing.key_value_fields import fields
from hpc_train.records.parsing.log_parser import OF_LINE, Hit

# With more than one dot, Hyperscan takes a second to compile them.
SETUP = (
    b" global_batch_size .",
    b" log_interval .",
    b" seq_length .",
    b"world_size .",
    b" global_num_gpus .",
    b"using world size: ",
    b"> global batch size",
)
_METRICS = {"seq_length": "sequence_length", "global_num_gpus": "world_size"}
_ARGUMENT = re.compile(
    r"^\s*(global_batch_size|global_num_gpus|log_interval|seq_length|world_size) \.{3,60} "
    r"(\d{1,12})(?:\.{0,60}(?:updated|default))?"
)
_WORLD = re.compile(r"^\s*(?:> ?)?using world size: (\d{1,9})(?:,.*| and .*)?")
_BATCH = re.compile(r"^\s*> ?global batch size ?[:=] ?(\d{1,12})")
MODEL = (b"> number of parameters on (tensor, pipeline)",)
_MODEL_PART = re.compile(
    r"> number of parameters on \(tensor, pipeline\) model parallel rank "
    r"\((\d{1,6}), (\d{1,6})\): (\d{1,15})(?!\S)"
)
_HEAD = re.compile(
    r"(?:\[Rank (\d{1,7})\] \()?after (\d{1,15}) iterations\)? memory \((MB|GB)\) \|([^\[]*)"
)
# No bar ends the last field: it was cut where it has no decimals.
_SIZE = re.compile(r"\d{1,15}\.\d{1,20}")
_SCALES = {"MB": 2.0**-10, "GB": 1e9 / 2**30}
_VARIANTS = {
    "max allocated": "max_allocated",
    "max reserved": "max_reserved",
    "max cached": "max_reserved",
    "mem max allocated gigabytes": "max_allocated",
    "mem max reserved gigabytes": "max_reserved",
}


def memory(text: str) -> Iterator[Hit]:
    """Yield the maxima of each report on the line; ranks write several into one."""
    for rank, step, unit, rest in _HEAD.findall(text):
        for key, value in fields(rest + "|")[0]:
            variant = _VARIANTS.get(key)
            if variant and _SIZE.fullmatch(value):
                size = float(value) * _SCALES[unit]
                who = int(rank) if rank else OF_LINE
                yield Hit("memory", size, "per_rank", int(step), who, variant=variant)


def model(text: str) -> Iterator[Hit]:
    """Yield the parameters of each part of the model that a line names."""
    for tensor, pipeline, count in _MODEL_PART.findall(text):
        part = f"tensor {int(tensor)}, pipeline {int(pipeline)}"
        yield Hit("parameters", float(count), "per_rank", variant=part, once=part)


def setup(text: str) -> list[tuple[str, int]]:
    """Return the metric, or `log_interval`, and the number that the line states."""
    if match := _ARGUMENT.fullmatch(text):
        return [(_METRICS.get(match[1], match[1]), int(match[2]))]
    if match := _WORLD.fullmatch(text):
        return [("world_size", int(match[1]))]
    if match := _BATCH.fullmatch(text):
        return [("global_batch_size", int(match[1]))]
    return []
