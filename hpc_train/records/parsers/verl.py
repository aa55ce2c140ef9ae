"""verl's console logger: `step:1 - actor/lr:1e-06 - .. - timing_s/step:.. - perf/throughput:..`.

| field | metric | unit | scope |
|---|---|---|---|
| perf/time_per_step, else timing_s/step | step_time | s | global |
| perf/throughput, beside perf/total_num_tokens | tokens_per_second | 1/s | per GPU |
| perf/mfu/actor | mfu, variant actor: of the update alone | 1 | per GPU |
| perf/max_memory_allocated_gb, ..._reserved_gb | memory, variants max_... | GiB | per rank |
| actor/lr, actor/grad_norm | learning_rate, grad_norm | 1 | global |
| actor/pg_loss | loss, variant policy | 1 | global |
| train/loss, train/time(s), train/lr(1e-3), val/loss | the same, for fine-tuning | | global |

The time of a step includes generation, rewards and updates; in older versions also a validation or
a checkpoint during the step. Without perf/total_num_tokens, the throughput is not in tokens, and is
omitted. Older versions print three decimals; a learning rate that is too small for them is omitted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.key_value_fields import Field
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.printed_numbers import NUMBER, number, scaled

_HEAD = re.compile(r"\bstep:(?P<step>\d{1,12}) -(?= [A-Za-z_][\w/().-]{0,80}:)")
# NumPy's scalars are printed with their type.
_FIELD = re.compile(
    rf" (?P<key>[A-Za-z_][\w/().@-]{{0,120}}):(?:np\.float\d\d\()?(?P<value>{NUMBER})\)?"
    r"(?P<end> -|$)"
)
_TOKENS = "perf/total_num_tokens"
_TIME = Field("step_time", "global")
_LAST = "timing_s/step"
_FIELDS = {
    "perf/time_per_step": _TIME,
    _LAST: _TIME,
    "train/time(s)": _TIME,
    "perf/throughput": Field("tokens_per_second", "per_gpu"),
    "perf/mfu/actor": Field("mfu", "per_gpu", variant="actor"),
    "mfu/actor": Field("mfu", "per_gpu", variant="actor"),
    "perf/max_memory_allocated_gb": Field("memory", "per_rank", variant="max_allocated"),
    "perf/max_memory_reserved_gb": Field("memory", "per_rank", variant="max_reserved"),
    "actor/lr": Field("learning_rate", "global"),
    "train/lr(1e-3)": Field("learning_rate", "global", 1e-3),
    "actor/grad_norm": Field("grad_norm", "global"),
    "actor/pg_loss": Field("loss", "global", variant="policy"),
    "train/loss": Field("loss", "global"),
    "val/loss": Field("loss", "global", variant="validation"),
}


class Verl:
    """Parser of verl's lines."""

    title = "verl"
    literals = (
        b" - timing_s/",
        b" - perf/",
        b" - train/loss:",
        b" - val/loss:",
        b" - actor/",
    )
    sample = (
        "step:1 - actor/pg_loss:-0.125 - actor/grad_norm:0.5 - perf/mfu/actor:0.35 - "
        "perf/max_memory_allocated_gb:40.5 - actor/lr:1e-06 - timing_s/gen:16.25 - "
        "timing_s/step:48.5 - perf/total_num_tokens:159906 - perf/time_per_step:48.5 - "
        "perf/throughput:3297.031"
    )
    states: Mapping[str, Scope] = {
        "loss": "global",
        "grad_norm": "global",
        "mfu": "per_gpu",
        "memory": "per_rank",
        "learning_rate": "global",
        "step_time": "global",
        "tokens_per_second": "per_gpu",
    }
    wants_next = False

    def __call__(self) -> Verl:
        """Return itself: it has no state."""
        return self

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the fields; the last number of a line may be truncated."""
        head = _HEAD.search(line.text)
        if head is None:
            return
        text = line.text[head.end() :].replace(" - ", " -  ")
        found = {m["key"]: m for m in _FIELD.finditer(text)}
        if "perf/time_per_step" in found:
            found.pop(_LAST, None)
        for key, match in found.items():
            field, value = _FIELDS.get(key), number(match["value"])
            if field is None or value is None or not (match["end"] or _long(match["value"])):
                continue
            if key == "perf/throughput" and _TOKENS not in found:
                continue
            if field.metric == "learning_rate" and value == 0:
                continue
            step = int(head["step"])
            value = scaled(value, field.scale)
            yield Hit(field.metric, value, field.scope, step, variant=field.variant)


def _long(text: str) -> bool:
    """Return whether a number has three or more decimals."""
    return len(text.partition(".")[2]) > 2


PARSER = Verl()
