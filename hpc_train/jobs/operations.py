"""Conditions of a run as numbers: operations of its model, and the peak of its GPU."""

import re
from collections.abc import Mapping

PARAMETERS, FLOPS, PEAK = "parameters", "flops_per_sample", "gpu_peak_tflops"
# Outside it a condition is no number of operations.
_LEAST, _MOST = 1e-3, 1e30
_DTYPES = {
    "bfloat16": "bf16", "float16": "fp16", "half": "fp16", "16": "fp16", "float32": "fp32",
    "float": "fp32", "32": "fp32", "float64": "fp64", "double": "fp64", "float8": "fp8",
}  # fmt: skip
_MODE = re.compile(r"^torch\.|-(?:mixed|true)$")


def number_of(text: str | None) -> float | None:
    """Return a condition as a number above 0; None if it is none."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if _LEAST <= value <= _MOST else None


def dtype_of(precision: str | None) -> str:
    """Return the short name of a precision: `bf16` for `torch.bfloat16` and `bf16-mixed`."""
    word = _MODE.sub("", (precision or "").strip().lower())
    return _DTYPES.get(word, word)


def peak_tflops(text: str | None, precision: str | None) -> float | None:
    """Return the peak [TFLOP/s] of a GPU from `989.5`, or from `bf16=989.5 fp32=67`."""
    if text is None or "=" not in text:
        return number_of(text)
    named = dict(part.partition("=")[::2] for part in text.split())
    return number_of(named.get(dtype_of(precision)))


def wrong_numbers(conditions: Mapping[str, str]) -> list[str]:
    """Return `parameters 'seven'` for each of these conditions that cannot be read."""
    values = {
        PARAMETERS: number_of(conditions.get(PARAMETERS)),
        FLOPS: number_of(conditions.get(FLOPS)),
        PEAK: peak_tflops(conditions.get(PEAK), conditions.get("precision")),
    }
    return [
        f"{name} {conditions[name]!r}"
        for name, value in values.items()
        if conditions.get(name) and value is None
    ]
