"""Option `--target` -> the target of a training."""

from __future__ import annotations

import math

from hpc_train.errors import ReportError, nearest
from hpc_train.model.training_target import Target

_METRICS = ("accuracy", "loss")
_HINT = "--target accuracy=0.93, or --target loss=0.2"


def target_of(text: str | None) -> Target | None:
    """Return the target of `accuracy=0.93` or `loss=0.2`; None without one.

    Raises:
        ReportError: another metric, or an invalid value.
    """
    if text is None:
        return None
    name, _, number = text.partition("=")
    if name not in _METRICS:
        raise ReportError(
            f"--target {text}: targets are {' and '.join(_METRICS)}{nearest(name, _METRICS)}", _HINT
        )
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ReportError(f"--target {text}: {number!r} is not a number", _HINT)
    if name == "accuracy":
        if not 0 < value <= 1:
            percent = f"; did you mean {value / 100:g}?" if 1 < value <= 100 else ""
            raise ReportError(
                f"--target {text}: an accuracy is a fraction, above 0 and at most 1{percent}", _HINT
            )
        return Target(metric="accuracy", value=value)
    return Target(metric="loss", value=value)
