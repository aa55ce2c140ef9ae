"""nanotron: `iteration: n / N | key: v | ...`, numbers with three digits (`1.02K`, `18.3B`).

Values are of the last step before the line. tokens_per_sec, the time [ms], loss and batch size
[samples] are global; fields with per_gpu in their name are per GPU. Memory is that of the printing
rank: `cuda_max_memory_reserved` [B] in the first lines, and `Peak reserved: 496.00MiB`, the peak
since the previous such line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.key_value_fields import Field, fields
from hpc_train.records.parsing.log_parser import Hit, Unreadable
from hpc_train.records.parsing.printed_numbers import number, scaled

_HEAD = re.compile(r"\biteration: (?P<step>\d{1,15}) ?/ ?\d{1,15} \|")
_TIME = Field("step_time", "global", 1e-3)
_FIELDS = {
    "elapsed time per iteration ms": _TIME,
    "time per iteration ms": _TIME,
    "tokens per sec": Field("tokens_per_second", "global"),
    "tokens per sec per gpu": Field("tokens_per_second", "per_gpu"),
    "global batch size": Field("global_batch_size", "global"),
    "lm loss": Field("loss", "global"),
    "lr": Field("learning_rate", "global"),
    "model tflops per gpu": Field("tflops", "per_gpu"),
    "grad norm": Field("grad_norm", "global"),
    "cuda max memory reserved": Field("memory", "per_rank", 2.0**-30),
}
_PEAK = re.compile(r"\. Peak reserved: (\d{1,12}\.\d\d)MiB$")


class Nanotron:
    """Parser of nanotron's lines."""

    title = "nanotron"
    literals = (b"| tokens_per_sec_per_gpu: ", b". Peak reserved: ")
    sample = (
        "[INFO|DP=0|PP=0|TP=0|node1]: iteration: 30 / 100 | consumed_tokens: 7.86M | "
        "time_per_iteration_ms: 1.25K | tokens_per_sec: 210K | tokens_per_sec_per_gpu: 26.2K | "
        "global_batch_size: 128 | grad_norm: 0.71 | lm_loss: 6.42 | lr: 0.0003 | "
        "model_tflops_per_gpu: 180 | eta: 0:01:28"
    )
    states: Mapping[str, Scope] = {
        "step_time": "global",
        "tokens_per_second": "per_gpu",
        "global_batch_size": "global",
        "grad_norm": "global",
        "loss": "global",
        "learning_rate": "global",
        "tflops": "per_gpu",
    }
    wants_next = False

    def __call__(self) -> Nanotron:
        """Return itself: it has no state."""
        return self

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the fields of the line that are measurements."""
        head = _HEAD.search(line.text)
        if head is None:
            peak = _PEAK.search(line.text)
            if peak:
                yield Hit("memory", float(peak[1]) * 2.0**-10, "per_rank")
            elif "tokens_per_sec_per_gpu" in line.text:
                yield Unreadable()
            return
        found, _ = fields(line.text[head.end() :])
        for key, text in found:
            field = _FIELDS.get(key)
            value = number(text) if field else None
            if field and value is not None:
                yield Hit(field.metric, scaled(value, field.scale), field.scope, int(head["step"]))


PARSER = Nanotron()
