"""build-nanogpt and nanochat: `step 10 | loss: 6.1 | lr .. | dt: 338.10ms | tok/sec: ..`.

| field | metric | unit | scope |
|---|---|---|---|
| loss | loss, mean over ranks; nanochat smooths it: running_average | 1 | global |
| norm, lr | grad_norm, learning_rate | 1 | global |
| dt | step_time, of this step, printed in ms | s | global |
| tok/sec | tokens_per_second, of this step, over all ranks | 1/s | global |
| mfu (nanochat), in per cent | mfu, of this step | 1 | per GPU |

Printed by the master rank. nanochat's lines are recognised by their progress: `(0.05%)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.key_value_fields import Field
from hpc_train.records.parsing.log_parser import Hit, Unreadable
from hpc_train.records.parsing.printed_numbers import NUMBER, number, scaled

_HEAD = re.compile(
    r"\bstep:? {0,8}(?P<step>\d{1,12})(?:/\d{1,12})?(?P<share> \(\d{1,3}\.\d{1,3}%\))?(?: \||,)"
    r"(?= (?:train )?loss:? )"
)
# The first versions separate fields by commas; a number without one after it may be cut.
_FIELD = re.compile(
    rf" (?P<key>(?:[a-z]{{1,8}} )?[a-z/]{{1,12}}):? {{1,4}}(?P<value>{NUMBER})"
    r"(?P<unit>ms|%)?(?P<end> \||,|$)"
)
_DECIMALS = re.compile(r"\.\d\d$")
_TIME = Field("step_time", "global", 1e-3)
_LOSS = Field("loss", "global")
_NORM = Field("grad_norm", "global")
_FIELDS = {
    "loss": _LOSS,
    "train loss": _LOSS,
    "norm": _NORM,
    "grad norm": _NORM,
    "lr": Field("learning_rate", "global"),
    "tok/sec": Field("tokens_per_second", "global"),
    "mfu": Field("mfu", "per_gpu", 1e-2),
}


class BuildNanoGpt:
    """Parser of the lines of both programs."""

    title = "build-nanogpt, nanochat"
    literals = (b" tok/sec: ",)
    sample = (
        "step    10 | loss: 6.123456 | lr 6.0000e-04 | norm: 1.2345 | dt: 338.10ms | "
        "tok/sec: 1550689.13\n"
        "step 00020/21400 (0.09%) | loss: 5.123456 | lrm: 1.00 | dt: 338.10ms | "
        "tok/sec: 1,550,689 | mfu: 47.60 | total time: 0.06m\n"
    )
    states: Mapping[str, Scope] = {
        "loss": "global",
        "learning_rate": "global",
        "grad_norm": "global",
        "step_time": "global",
        "tokens_per_second": "global",
        "mfu": "per_gpu",
    }
    wants_next = False

    def __call__(self) -> BuildNanoGpt:
        """Return itself: it has no state."""
        return self

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the complete fields: followed by other text, or with all their decimals."""
        head = _HEAD.search(line.text)
        if head is None:
            return
        for match in _FIELD.finditer(line.text, head.end()):
            key, value = match["key"], number(match["value"])
            field = _TIME if key == "dt" and match["unit"] == "ms" else _FIELDS.get(key)
            if field is None or value is None:
                continue
            if not match["end"] and not _DECIMALS.search(match["value"]):
                yield Unreadable()
                continue
            smooth = head["share"] and field is _LOSS
            yield Hit(
                field.metric,
                scaled(value, field.scale),
                field.scope,
                int(head["step"]),
                variant="running_average" if smooth else "",
            )


PARSER = BuildNanoGpt()
