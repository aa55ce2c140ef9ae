"""Target: a quality that a training should reach."""

from __future__ import annotations

from typing import Literal

from hpc_train.model.value import Value


class Target(Value, frozen=True, kw_only=True):
    """An accuracy (a fraction) to be reached from below, or a loss from above."""

    metric: Literal["accuracy", "loss"]
    value: float

    @property
    def higher(self) -> bool:
        """Whether a higher value is better."""
        return self.metric == "accuracy"

    def __str__(self) -> str:
        """Return it as `accuracy >= 0.93`."""
        return f"{self.metric} {'>=' if self.higher else '<='} {self.value:g}"
