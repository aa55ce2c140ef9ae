"""JSON lines of MMEngine (vis_data/scalars.json) and MMCV 1.x (.log.json): one object per log line.

Values, units and scopes are those of the text lines: `time` [s] and `loss` of the printing rank
(MMCV reduces the loss over the ranks), `lr`, `grad_norm`, `memory` (printed in MiB, stored in GiB).
MMEngine numbers iterations within the run (`step`), MMCV within the epoch, with `"mode": "train"`.
The file does not contain the number of iterations that a mean covers. For MMCV, the mean is assumed
to cover the iterations since the previous line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.key_value_fields import Field
from hpc_train.records.parsing.log_parser import Hit, Unreadable
from hpc_train.records.parsing.printed_numbers import finite, scaled, scan_object, whole
from hpc_train.records.parsing.step_counts import RunningStep, StepPosition

_FIELDS = {
    "time": Field("step_time", "per_rank", mean=True),
    "loss": Field("loss", "per_rank", mean=True),
    "grad_norm": Field("grad_norm", "global", mean=True),
    "lr": Field("learning_rate", "global"),
    "memory": Field("memory", "per_rank", 2.0**-10),
}
_ACCURACIES = {"accuracy/top1": 1e-2, "accuracy_top-1": 1e-2, "acc/top1": 1.0, "top1_acc": 1.0}


class MmEngineJson:
    """Parser of such a file; remembers the step."""

    title = "MMEngine's scalars.json, MMCV's .log.json"
    literals = (b'"data_time": ', b'"mode": "val"')
    sample = (
        '{"lr": 0.01, "data_time": 0.004, "grad_norm": 8.56, "loss": 0.7176, "time": 0.1285, '
        '"epoch": 1, "iter": 50, "memory": 2581, "step": 50}\n'
        '{"accuracy/top1": 70.7207, "data_time": 0.0004, "time": 0.0601, "step": 1}\n'
    )
    states: Mapping[str, Scope] = {
        "learning_rate": "global",
        "grad_norm": "global",
        "loss": "per_rank",
        "step_time": "per_rank",
        "memory": "per_rank",
        "accuracy": "global",
    }
    wants_next = False

    def __init__(self) -> None:
        self._running = RunningStep()
        self._last: tuple[object, int] | None = None
        self._epochs = 0

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of a line of training, or the accuracy of a validation."""
        text = line.text.strip()
        if not text.startswith("{"):
            return
        found = scan_object(text, 0)
        if found is None:
            yield Unreadable()
            return
        log, end = found
        if end == len(text) and "data_time" in log and "lr" in log and "loss" in log:
            yield from self._step(log)
        elif end == len(text) and ("data_time" in log or log.get("mode") == "val"):
            yield from _accuracy(log)

    def _step(self, log: Mapping[str, object]) -> Iterator[Hit]:
        steps, step, of_mmcv = 1, whole(log.get("step")), log.get("mode") == "train"
        done = whole(log.get("iter"))
        if of_mmcv and done is not None:
            step, steps = self._at(log.get("epoch"), done)
        for key, field in _FIELDS.items():
            value = finite(log.get(key))
            # Without a GPU, the memory is 0.
            if not value:
                continue
            scope: Scope = "global" if key == "loss" and of_mmcv else field.scope
            mean = steps if field.mean else 1
            yield Hit(field.metric, scaled(value, field.scale), scope, step, steps=mean)

    def _at(self, epoch: object, done: int) -> StepPosition:
        """Return the position of an iteration; its number may continue over the epochs."""
        before, self._last = self._last, (epoch, done)
        if before is None:
            return self._running.at(0, done)._replace(since=1)
        self._epochs += epoch != before[0] and done <= before[1]
        return self._running.at(self._epochs, done)


def _accuracy(log: Mapping[str, object]) -> Iterator[Hit]:
    epoch = whole(log.get("epoch", log.get("step")))
    for key, factor in _ACCURACIES.items():
        value = finite(log.get(key))
        if value is not None:
            yield Hit("accuracy", scaled(value, factor), "global", epoch)
