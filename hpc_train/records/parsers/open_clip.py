"""open_clip: `Train Epoch: 0 [ 512/9600 (5%)] Data (t): .. Batch (t): 0.5, 1024/s, 128/s/gpu ..`.

Printed by rank 0. `Batch (t)` is the mean over the batches since the previous line [s]. The rates
are those of the last batch, in images/s, of the whole job and of one GPU. The position in the epoch
is counted in samples. The first line of an epoch is printed after one batch, so its position is the
number of samples of a batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit, Unreadable
from hpc_train.records.parsing.printed_numbers import NUMBER, number

_PLACE = re.compile(r"Train Epoch: (\d{1,9}) \[ *(\d{1,15})/(\d{1,15}) \(\d{1,3}%\)\]")
_BATCH = re.compile(
    rf" Batch \(t\):? (?P<time>{NUMBER})(?=[, ])(?:, (?P<all>{NUMBER})/s)?"
    rf"(?:, (?P<one>{NUMBER})/s/gpu)?"
)
_LOSS = re.compile(rf" (?:Contrastive_)?[Ll]oss: ({NUMBER})\s")
_RATE = re.compile(rf" LR: ({NUMBER})\s")


class OpenClip:
    """Parser of the lines; remembers the global batch and the last step."""

    title = "open_clip"
    literals = (b" Batch (t)",)
    sample = (
        "Train Epoch: 0 [  512/9600 (5%)] Data (t): 0.100 Batch (t): 0.500, 1024.00/s, "
        "128.000/s/gpu LR: 0.000010 Logit Scale: 14.286 Contrastive_loss: 6.2146 (6.2146)"
    )
    states: Mapping[str, Scope] = {
        "step_time": "global",
        "samples_per_second": "global",
        "loss": "per_rank",
        "learning_rate": "global",
    }
    wants_next = False

    def __init__(self) -> None:
        self._epoch = -1
        self._batch = 0
        self._last = 0

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of an interval."""
        text = line.text
        place = _PLACE.search(text)
        if place is None:
            return
        batch = _BATCH.search(text, place.end())
        if batch is None:
            yield Unreadable()
            return
        rate, time = number(batch["all"] or ""), number(batch["time"])
        about = rate * time if rate and time else None
        epoch, seen, total = (int(part) for part in place.groups())
        step = self._step(epoch, seen, total, about)
        steps = step - self._last if step is not None and 0 < self._last < step else 1
        self._last = step or 0
        one = number(batch["one"] or "")
        if one is not None:
            yield Hit("samples_per_second", one, "per_gpu", step)
        found = {
            "step_time": batch["time"],
            "samples_per_second": batch["all"],
            "loss": _group(_LOSS.search(text)),
            "learning_rate": _group(_RATE.search(text)),
        }
        for metric, stated in found.items():
            value = number(stated or "")
            if value is not None:
                mean_of = steps if metric == "step_time" else 1
                yield Hit(metric, value, self.states[metric], step, steps=mean_of)

    def _step(self, epoch: int, seen: int, total: int, about: float | None) -> int | None:
        if epoch != self._epoch:
            # A log that begins within an epoch does not show the size of a batch.
            is_start = about is None or about / 2 < seen < about * 2
            self._epoch, self._batch = epoch, seen if is_start else 0
        if not self._batch or seen % self._batch:
            return None
        return epoch * (total // self._batch) + seen // self._batch


def _group(match: re.Match[str] | None) -> str:
    return match[1] if match else ""
