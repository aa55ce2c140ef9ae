"""Megatron's memory report, once per run: `[Rank 3] (after 20 iterations) memory (MB) | ...`.

The first releases name no rank: `after 20 iterations memory (MB) | ... | max cached: ...`.

Per rank. `MB` are MiB; the newer `GB` (`mem-max-allocated-gigabytes`) are 1e9 B. The current values
are left out: only the maxima, of what tensors hold and of what the allocator holds, say what fits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.records.parsers.base import OF_LINE, Hit
from hpc_train.records.parsers.fields import fields

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
