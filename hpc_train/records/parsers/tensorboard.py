"""TensorBoard's event files, as the lines `tfevents STEP TAG = VALUE` of `records.event_file`.

The tags are those of Lightning, of Hugging Face's Trainer, Megatron-LM (`lm loss`,
`iteration-time`), torchtitan (`throughput(tps)`, `loss_metrics/global_avg_loss`) and of PyTorch's
tutorials (`Loss/train`), and names as in tables of metrics (`parsing.logged_metrics`). Times are in
seconds. A tag without a stated unit and scope, such as `throughput`, is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from hpc_train.model.record import Scope
from hpc_train.records.event_file import MARK
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.logged_metrics import LoggedMetric, logged_metric
from hpc_train.records.parsing.printed_numbers import COUNTABLE, number

_LINE = re.compile(MARK + r" (-?\d{1,20}) ([^\n]{1,500}) = ([-+.\deEnaif]{1,40})")


class TensorBoard:
    """Parser of the scalars of an event file."""

    title = "TensorBoard's event files (`*tfevents*`)"
    literals = (MARK.encode() + b" ",)
    sample = (
        "tfevents 10 train/loss = 2.25\ntfevents 10 train/grad_norm = 0.5\n"
        "tfevents 10 lr-AdamW = 0.0003\ntfevents 10 iteration-time = 0.5\n"
        "tfevents 10 throughput(tps) = 8192.0\ntfevents 10 mfu(%) = 41.5\n"
        "tfevents 10 memory/max_reserved(GiB) = 61.5\ntfevents 10 val/accuracy = 0.75\n"
    )
    states: Mapping[str, Scope] = {
        "loss": "per_rank",
        "grad_norm": "global",
        "learning_rate": "global",
        "step_time": "global",
        "tokens_per_second": "per_gpu",
        "mfu": "per_gpu",
        "memory": "per_rank",
        "accuracy": "global",
    }
    wants_next = False

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the scalar of a line, if its tag is known."""
        match = _LINE.fullmatch(line.text)
        metric = match and _of_tag(match[2])
        if not match or not metric:
            return
        step, value = int(match[1]), number(match[3])
        if value is None:
            # `not_finite` finds the others.
            if metric.metric == "loss" and not match[2].endswith("loss"):
                yield Hit("not_finite", 1.0, "per_rank", variant="loss")
            return
        value = metric.value(value)
        if value is not None:
            at = step if 0 <= step < COUNTABLE else None
            yield Hit(metric.metric, value, metric.scope, at)


@lru_cache(1024)
def _of_tag(tag: str) -> LoggedMetric | None:
    return logged_metric(tag)
