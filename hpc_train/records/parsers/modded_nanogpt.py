"""modded-nanogpt and its variants: `step:n/N val_loss:3.9 train_time:62563ms step_avg:260.68ms`.

| field | metric | unit | scope |
|---|---|---|---|
| `train_time`, its increase since the previous line | step_time, printed in ms | s | global |
| `step_avg`, mean of the run so far | step_time, variant running_average | s | global |
| `train_loss`, `val_loss` | loss; of `val_loss` variant validation | 1 | global |
| `peak memory allocated: n MiB reserved: m MiB` | memory, variant max_... | GiB | per rank |

Printed by rank 0. The clock is stopped during a validation, and restarted after the warm-up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.printed_numbers import NUMBER, number

_LINE = re.compile(
    rf"\bstep:(?P<step>\d{{1,15}})/\d{{1,15}} (?:(?P<kind>train|val)_loss:(?P<loss>{NUMBER}) )?"
    rf"(?:[a-z_]{{1,20}}:{NUMBER} ){{0,4}}train_time:(?P<time>{NUMBER})ms "
    rf"step_avg:(?P<mean>{NUMBER}|nan|inf)ms"
)

_PEAK = re.compile(
    r"\s{0,8}peak memory allocated: (?P<max_allocated>\d{1,9}) MiB"
    r"(?: reserved: (?P<max_reserved>\d{1,9}) MiB)?"
)


class ModdedNanoGpt:
    """Parser of the lines of modded-nanogpt."""

    title = "modded-nanogpt"
    literals = (b"ms step_avg:", b"peak memory allocated: ")
    sample = (
        "step:100/1480 train_loss:5.2500 train_time:25000ms step_avg:250.00ms\n"
        "step:110/1480 train_loss:5.1250 train_time:27400ms step_avg:249.10ms\n"
    )
    states: Mapping[str, Scope] = {"loss": "global", "step_time": "global"}
    wants_next = False

    def __init__(self) -> None:
        self._last: tuple[int, float] | None = None

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the loss and the times."""
        match = _LINE.search(line.text)
        if match is None:
            yield from _peak(line.text)
            return
        step, loss, mean = int(match["step"]), number(match["loss"] or ""), number(match["mean"])
        if loss is not None:
            variant = "validation" if match["kind"] == "val" else ""
            yield Hit("loss", loss, "global", step, variant=variant)
        yield from self._since(step, number(match["time"]))
        if mean is not None:
            yield Hit("step_time", mean * 1e-3, "global", step, variant="running_average")

    def _since(self, step: int, clock: float | None) -> Iterator[Hit]:
        last, self._last = self._last, None if clock is None else (step, clock)
        if last is None or clock is None or step <= last[0] or clock <= last[1]:
            return
        steps = step - last[0]
        yield Hit("step_time", (clock - last[1]) * 1e-3 / steps, "global", step, steps=steps)


def _peak(text: str) -> Iterator[Hit]:
    match = _PEAK.fullmatch(text)
    for variant, size in match.groupdict().items() if match else ():
        if size is not None:
            yield Hit("memory", int(size) * 2.0**-10, "per_rank", variant=variant)
