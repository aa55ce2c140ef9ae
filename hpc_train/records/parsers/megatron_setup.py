"""Megatron's arguments and banners: what a job's sizes are.

Global: `global_batch_size ..... 8`, `seq_length ..... 1024`, `world_size ..... 16`, all as printed.
"""

from __future__ import annotations

import re

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


def setup(text: str) -> list[tuple[str, int]]:
    """Return the metric, or `log_interval`, and the number that the line states."""
    if match := _ARGUMENT.fullmatch(text):
        return [(_METRICS.get(match[1], match[1]), int(match[2]))]
    if match := _WORLD.fullmatch(text):
        return [("world_size", int(match[1]))]
    if match := _BATCH.fullmatch(text):
        return [("global_batch_size", int(match[1]))]
    return []
