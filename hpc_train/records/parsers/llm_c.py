"""llm.c: `step 1/100 | loss 11.0 (+nanz)| norm .. | lr .. | 99.5 ms | 40.1% bf16 MFU | 9 tok/s`.

| field | metric | unit | scope |
|---|---|---|---|
| loss, norm, lr | loss, grad_norm, learning_rate | 1 | global |
| ms | step_time, of this step | s | global |
| MFU, in per cent | mfu, of this step; -100 % where the device is unknown | 1 | per GPU |
| tok/s | tokens_per_second, variant running_average | 1/s | global |
| `total average iteration time` | step_time, variant mean | s | global |

`train_gpt2.cu` smooths tok/s over about the last 20 steps. `train_gpt2.py` does not; its lines have
no MFU and contain `train loss`. Printed by rank 0, for all processes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.printed_numbers import NUMBER, number, scaled

_Z = r" \([-+.\da-z]{1,20}z\)\|"
_STEP = r"\bstep {1,8}(?P<step>\d{1,12})/\d{1,12} \| "
_CUDA = re.compile(
    rf"{_STEP}loss (?P<loss>{NUMBER}){_Z} norm (?P<grad_norm>{NUMBER}){_Z}"
    rf" lr (?P<learning_rate>{NUMBER}) \| (?P<step_time>{NUMBER}) ms \| "
    rf"(?:(?P<mfu>\d{{1,3}}\.\d)|-?[\d.a-z]{{1,8}})% bf16 MFU \| (?P<smooth>\d{{1,15}}) tok/s"
)
_PYTHON = re.compile(
    rf"{_STEP}train loss (?P<loss>{NUMBER}) \| norm (?P<grad_norm>{NUMBER})"
    rf" \| lr (?P<learning_rate>{NUMBER}) \| \((?P<step_time>{NUMBER}) ms"
    rf" \| (?P<tokens_per_second>\d{{1,15}}) tok/s\)"
)
_MEAN = re.compile(rf"^total average iteration time: ({NUMBER}) ms$")
_SCALE = {"step_time": 1e-3, "mfu": 1e-2}


class LlmC:
    """Parser of the lines of llm.c."""

    title = "llm.c"
    literals = (b"z)| norm ", b" ms | ", b"total average iteration time: ")
    sample = (
        "step    1/100 | loss 11.032358 (+nanz)| norm 22.1414 (+nanz)| lr 8.57e-07 | 2575.63 ms | "
        "39.0% bf16 MFU | 203557 tok/s"
    )
    states: Mapping[str, Scope] = {
        "loss": "global",
        "grad_norm": "global",
        "learning_rate": "global",
        "step_time": "global",
        "mfu": "per_gpu",
        "tokens_per_second": "global",
    }
    wants_next = False

    def __call__(self) -> LlmC:
        """Return itself: it has no state."""
        return self

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the values of a step, or the mean of all steps."""
        match = _CUDA.search(line.text) or _PYTHON.search(line.text)
        if match is None:
            mean = _MEAN.search(line.text)
            value = number(mean[1]) if mean else None
            if value is not None:
                yield Hit("step_time", scaled(value, 1e-3), "global", variant="mean")
            return
        for name, text in match.groupdict().items():
            value = None if text is None or name == "step" else number(text)
            if value is not None:
                metric = "tokens_per_second" if name == "smooth" else name
                variant = "running_average" if name == "smooth" else ""
                value = scaled(value, _SCALE.get(name, 1.0))
                yield Hit(metric, value, self.states[metric], int(match["step"]), variant=variant)


PARSER = LlmC()
