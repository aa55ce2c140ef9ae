"""`--deadline 24h`, `--budget 500GPUh` -> seconds and GPU-hours."""

from __future__ import annotations

from hpc_train.base.errors import SpecError
from hpc_train.base.units import Duration

_UNITS = ("gpuh", "gpu-hours", "h")


def deadline_s(text: str | None) -> float | None:
    """Return seconds from `24h`.

    Raises:
        SpecError: it is no time.
    """
    if text is None:
        return None
    try:
        return float(Duration.parse(text))
    except ValueError as failure:
        raise SpecError(f"--deadline {failure}", "--deadline 24h") from None


def budget_gpu_hours(text: str | None) -> float | None:
    """Return GPU-hours from `500GPUh` or `500`.

    Raises:
        SpecError: it is no number above 0.
    """
    if text is None:
        return None
    number = text.strip().lower()
    for unit in _UNITS:
        number = number.removesuffix(unit)
    try:
        hours = float(number)
    except ValueError:
        hours = 0.0
    if not 0 < hours < float("inf"):
        raise SpecError(f"--budget {text!r}: not a number of GPU-hours above 0", "--budget 500GPUh")
    return hours
