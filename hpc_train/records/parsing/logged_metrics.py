"""The name under which a program logs a value -> its metric, unit and scope.

These are the columns of `metrics.csv` and of a history of Weights & Biases, and the tags of
TensorBoard. Means over an epoch and validation losses are not among them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from hpc_train.model.record import Scope
from hpc_train.records.parsing.printed_numbers import quotient, scaled


class LoggedMetric(NamedTuple):
    """The metric of a name; `is_rate`: it is the inverse of the logged value."""

    metric: str
    scope: Scope
    scale: float = 1.0
    is_rate: bool = False

    def value(self, logged: float) -> float | None:
        """Return a logged value in the unit of the metric; None if a rate is not positive."""
        if self.is_rate:
            return quotient(1, logged) if logged > 0 else None
        return scaled(logged, self.scale)


_NAMES: tuple[tuple[re.Pattern[str], LoggedMetric], ...] = tuple(
    (re.compile(pattern), metric)
    for pattern, metric in (
        (
            r"(?:train(?:ing)?[_/ ])?loss(?:_step)?|reduced_train_loss|Loss/train",
            LoggedMetric("loss", "per_rank"),
        ),
        # Megatron-LM, torchtitan.
        (r"lm loss|loss_metrics/global_avg_loss", LoggedMetric("loss", "global")),
        (r"(?:train[_/])?epoch_time", LoggedMetric("epoch_time", "per_rank")),
        (r"train_step_timing(?: in s)?|iteration-time", LoggedMetric("step_time", "global")),
        (r"(?:train[_/])?step_time(?:_s)?", LoggedMetric("step_time", "per_rank")),
        (
            r"(?:train[_/])?(?:samples|images)_per_sec(?:ond)?",
            LoggedMetric("samples_per_second", "unknown"),
        ),
        (
            r"(?:train[_/])?tokens_per_sec(?:ond)?",
            LoggedMetric("tokens_per_second", "unknown"),
        ),
        (
            r"train\|device/batches_per_sec",
            LoggedMetric("step_time", "per_rank", is_rate=True),
        ),
        (r"train\|device/samples_per_sec", LoggedMetric("samples_per_second", "per_gpu")),
        (
            r"train\|device/items_per_sec|throughput\(tps\)",
            LoggedMetric("tokens_per_second", "per_gpu"),
        ),
        (r"train\|device/flops_per_sec", LoggedMetric("tflops", "per_gpu", 1e-12)),
        (r"train\|device/mfu", LoggedMetric("mfu", "per_gpu")),
        (r"mfu\(%\)", LoggedMetric("mfu", "per_gpu", 1e-2)),
        (r"TFLOPS_per_GPU", LoggedMetric("tflops", "per_gpu")),
        (r"memory/max_reserved\(GiB\)", LoggedMetric("memory", "per_rank")),
        (
            r"lr(?:-[\w/]+)?|(?:train/)?learning[_-]rate",
            LoggedMetric("learning_rate", "global"),
        ),
        (r"(?:train/)?grad[_-]norm", LoggedMetric("grad_norm", "global")),
        (
            r"(?:val|test|eval)(?:_|/|_epoch_)acc(?:uracy)?(?:_epoch)?|Accuracy/(?:val|test)",
            LoggedMetric("accuracy", "global"),
        ),
        (r"eval_top1", LoggedMetric("accuracy", "global", 1e-2)),
    )
)


def logged_metric(name: str) -> LoggedMetric | None:
    """Return the metric of a name; None if it is unknown."""
    return next((metric for pattern, metric in _NAMES if pattern.fullmatch(name)), None)
