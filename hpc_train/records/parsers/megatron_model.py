"""Megatron's ` > number of parameters on (tensor, pipeline) model parallel rank (0, 1): 5120`.

One line for each part of the model, from rank 0 of the data-parallel group: `parameters` of that
part, with the variant `tensor 0, pipeline 1`. Lines run into one another, as all ranks print.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.records.parsers.base import Hit

MODEL = (b"> number of parameters on (tensor, pipeline)",)
_PART = re.compile(
    r"> number of parameters on \(tensor, pipeline\) model parallel rank "
    r"\((\d{1,6}), (\d{1,6})\): (\d{1,15})(?!\S)"
)


def model(text: str) -> Iterator[Hit]:
    """Yield the parameters of each part of the model that a line names."""
    for tensor, pipeline, count in _PART.findall(text):
        part = f"tensor {int(tensor)}, pipeline {int(pipeline)}"
        yield Hit("parameters", float(count), "per_rank", variant=part, once=part)
