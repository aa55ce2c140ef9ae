"""PaddleNLP's Trainer: `loss: .., learning_rate: .., global_step: 10, interval_runtime: .., ..`.

| field | metric | unit | scope |
|---|---|---|---|
| loss | loss, mean over ranks and the steps since the previous line | 1 | global |
| learning_rate | learning_rate | 1 | global |
| interval_runtime, divided by its steps | step_time, mean since the previous line | s | global |
| interval_tokens_per_second_per_device | tokens_per_second, likewise | 1/s | per GPU |
| interval_hardware_tflops_per_device | tflops, variant hardware | TFLOP/s | per GPU |

The number of steps is interval_runtime times interval_steps_per_second.
interval_samples_per_second is omitted: older versions divide one batch by the time of all steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.key_value_fields import Field
from hpc_train.records.parsing.log_parser import Hit, Unreadable
from hpc_train.records.parsing.printed_numbers import NUMBER, countable, number, scaled

_HEAD = re.compile(r"(?:^|\s)loss: (?=[-\d])")
_FIELD = re.compile(rf"(?P<key>[a-z_]{{1,60}}): (?P<value>{NUMBER}), ")
_FIELDS = {
    "loss": Field("loss", "global", mean=True),
    "learning_rate": Field("learning_rate", "global"),
    "interval_tokens_per_second_per_device": Field("tokens_per_second", "per_gpu", mean=True),
    "interval_hardware_tflops_per_device": Field("tflops", "per_gpu", variant="hardware"),
}


class PaddleNlp:
    """Parser of the Trainer's lines."""

    title = "PaddleNLP's Trainer"
    literals = (b", interval_steps_per_second: ",)
    sample = (
        "[2024-05-01 10:00:00,000] [    INFO] - loss: 12.0588, learning_rate: 3e-06, "
        "global_step: 20, interval_runtime: 11.518, interval_samples_per_second: 0.8682, "
        "interval_tokens_per_second_per_device: 889.0448, "
        "interval_hardware_tflops_per_device: 2.77, interval_steps_per_second: 0.8682, "
        "progress_or_epoch: 0.01"
    )
    states: Mapping[str, Scope] = {
        "loss": "global",
        "learning_rate": "global",
        "step_time": "global",
        "tokens_per_second": "per_gpu",
        "tflops": "per_gpu",
    }
    wants_next = False

    def __call__(self) -> PaddleNlp:
        """Return itself: it has no state."""
        return self

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the fields that end with a comma."""
        head = _HEAD.search(line.text)
        if head is None:
            return
        texts = {m["key"]: m["value"] for m in _FIELD.finditer(line.text, head.start())}
        found = {key: value for key, text in texts.items() if (value := number(text)) is not None}
        took, rate = found.get("interval_runtime"), found.get("interval_steps_per_second")
        step, done = countable(found.get("global_step")), countable((took or 0) * (rate or 0))
        if step is None or done is None or not took or not rate:
            yield Unreadable()
            return
        steps = max(1, done)
        for key, field in _FIELDS.items():
            if key in found:
                value = scaled(found[key], field.scale)
                mean = steps if field.mean else 1
                yield Hit(field.metric, value, field.scope, step, steps=mean, variant=field.variant)
        yield Hit("step_time", scaled(took, 1 / steps), "global", step, steps=steps)


PARSER = PaddleNlp()
