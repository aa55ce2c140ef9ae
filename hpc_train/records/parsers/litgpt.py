"""LitGPT, lit-gpt, lit-llama: `iter n step m: loss .., iter time: ..ms` and its newer forms.

| field | metric | unit | scope |
|---|---|---|---|
| `iter time`, older `time` | step_time, printed in ms (or s) | s | per rank |
| `loss`, `loss train` | loss of the last micro-batch | 1 | per rank |
| `speed` | tokens_per_second | 1/s | per GPU |

An iteration is a micro-batch: if gradients are accumulated (more iterations than steps, or no
speed), its time has the variant micro_batch. If a line names no step, the step is the iteration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.printed_numbers import NUMBER, number, scaled

_LINE = re.compile(
    r"\biter {1,8}(?P<iteration>\d{1,15})(?:/\d{1,15})?"
    r"(?:(?: \|)? {1,4}step {1,8}(?P<step>\d{1,15})(?:/\d{1,15})?)?(?: \||:)?"
    rf" {{0,4}}loss(?: train)?:? (?P<loss>{NUMBER}|nan|inf)(?P<between>[^\r\n]{{0,120}}?)"
    rf"\b(?:iter )?time: (?P<time>{NUMBER}) ?(?P<unit>m?s)\b"
    rf"(?:, speed: (?P<speed>{NUMBER}|-) toks/s/device)?"
)


class LitGpt:
    """Parser of the lines of LitGPT's training scripts."""

    title = "LitGPT, lit-gpt"
    literals = (b"ms, speed: ", b"iter time: ", b", time: ")
    sample = "iter 10: loss 9.1234, time: 250.50ms, speed: 8176 toks/s/device"
    states: Mapping[str, Scope] = {
        "loss": "per_rank",
        "step_time": "per_rank",
        "tokens_per_second": "per_gpu",
    }
    wants_next = False

    def __call__(self) -> LitGpt:
        """Return itself: it has no state."""
        return self

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the values of the first match."""
        match = _LINE.search(line.text)
        if match is None:
            return
        iteration = int(match["iteration"])
        step = iteration if match["step"] is None else int(match["step"])
        loss, time, speed = (number(match[name] or "") for name in ("loss", "time", "speed"))
        if loss is not None:
            yield Hit("loss", loss, "per_rank", step)
        if time is not None:
            # The oldest scripts count iterations from 0, steps from 1.
            alone = step in (iteration, iteration + 1) and match["speed"] != "-"
            seconds = scaled(time, 1e-3) if match["unit"] == "ms" else time
            yield Hit(
                "step_time", seconds, "per_rank", step, variant="" if alone else "micro_batch"
            )
        if speed is not None:
            yield Hit("tokens_per_second", speed, "per_gpu", step)


PARSER = LitGpt()
