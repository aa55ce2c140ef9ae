"""The fields of an iteration line that are measurements, and how their values are written."""

from __future__ import annotations

import re
from typing import NamedTuple

from hpc_train.records.parsing.key_value_fields import Field
from hpc_train.records.parsing.printed_numbers import NUMBER, number

_TFLOPS = Field("tflops", "per_gpu", mean=True)
_TOKENS_OF_GPU = Field("tokens_per_second", "per_gpu", mean=True)
_TOKENS = Field("tokens_per_second", "global", mean=True)
_SAMPLES = Field("samples_per_second", "global", mean=True)
_LOSS = Field("loss", "global", mean=True)
_MEMORY = Field("memory", "per_rank")

FIELDS = {
    "elapsed time per iteration ms": Field("step_time", "global", 1e-3, mean=True),
    "elapsed time per iteration s": Field("step_time", "global", mean=True),
    "throughput per gpu tflop s gpu": _TFLOPS,
    "compute per gpu tflop s gpu": _TFLOPS,
    "approx flops per gpu": _TFLOPS,
    "tflops": _TFLOPS,
    "lm tflops": _TFLOPS,
    "ds tflops": _TFLOPS._replace(variant="deepspeed"),
    "tokens per gpu tokens s gpu": _TOKENS_OF_GPU,
    "tokens per gpu per second tgs": _TOKENS_OF_GPU,
    "tokens per gpu per second": _TOKENS_OF_GPU,
    "tokens s gpu inst harmonic mean": _TOKENS_OF_GPU,
    "tokens s gpu": _TOKENS_OF_GPU,
    "tokens sec gpu": _TOKENS_OF_GPU,
    "tokens per second per gpu": _TOKENS_OF_GPU,
    "tokens per second per device": _TOKENS_OF_GPU,
    "throughput token sec gpu": _TOKENS_OF_GPU,
    "tokens per second": _TOKENS,
    "tokens sec": _TOKENS,
    "tokens per sec": _TOKENS,
    "samples per second": _SAMPLES,
    "samples sec": _SAMPLES,
    "samples per sec": _SAMPLES,
    "speed samples min gpu": Field("samples_per_second", "per_gpu", 1 / 60, mean=True),
    "energy per gpu j iter gpu": Field("energy", "per_gpu", mean=True),
    "power per gpu w gpu": Field("power", "per_gpu", mean=True),
    "hip mem usage free total usage ratio": _MEMORY,
    "rocm mem usage free total usage ratio": _MEMORY,
    "memory gib": _MEMORY,
    "learning rate": Field("learning_rate", "global"),
    "global batch size": Field("global_batch_size", "global"),
    "lm loss": _LOSS,
    "loss": _LOSS,
    "grad norm": Field("grad_norm", "global"),
}

_VALUE = re.compile(
    rf"^(?P<number>{NUMBER}|-?(?:nan|inf))"
    r" ?(?:(?P<prefix>[KMGTPEZ])?FLOPS|Gi?B)?"
    r"(?:/[-+.\w%]{1,24}){0,3}(?: \(avg [-+.\w]{1,24}\))?"
)
# Compared with TFLOP/s.
_PREFIXES = {"K": 1e-9, "M": 1e-6, "G": 1e-3, "T": 1.0, "P": 1e3, "E": 1e6, "Z": 1e9}
MOST = 1e100


class FieldValue(NamedTuple):
    """The value of a field; no number if it is not finite."""

    number: float | None


def reading(text: str) -> FieldValue | None:
    """Return the first number of a value; None if the text does not have the form of one."""
    match = _VALUE.fullmatch(text)
    if match is None:
        return None
    value = number(match["number"])
    if value is None or abs(value) > MOST:
        return FieldValue(None)
    return FieldValue(value * _PREFIXES.get(match["prefix"] or "", 1.0))
