"""fairseq and metaseq, all forms of `train_inner`: json, simple, tqdm, hydra's or own line prefix.

Values are global, and means over the updates since the previous line: `wps` is tokens/s of the
whole job, `wpb` the tokens and `bsz` the samples of an update; `wpb` divided by `wps` is the time
of an update. The loss is in bits (base 2). The first versions do not print the number of the
update, but its position in the epoch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit, Unreadable
from hpc_train.records.parsing.printed_numbers import NUMBER, VALUE, number, quotient

_JSON = re.compile(rf'"(\w{{1,40}})": "?{VALUE}(?=["}},])')
_SIMPLE = re.compile(rf"[ ,](\w{{1,40}})={VALUE}(?=[,\]\s]|$)")
_PLACE = re.compile(r"\| epoch 0{0,2}(\d{1,9}) +(\d{1,12}) / (\d{1,12}) loss=")
_DONE = re.compile(r"done training in (" + NUMBER + ") seconds")
_METRICS = {
    "loss": "loss",
    "wps": "tokens_per_second",
    "bsz": "samples",
    "gnorm": "grad_norm",
    "lr": "learning_rate",
}


class Fairseq:
    """Parser of the lines; remembers the last update."""

    title = "fairseq, metaseq"
    literals = (b'"wps": ', b", wps=", b"done training in ")
    sample = (
        '2024-05-01 10:00:00 | INFO | train_inner | {"epoch": 1, "update": 0.1, "loss": "9.5", '
        '"wps": "20000", "ups": "2.5", "wpb": "8000", "bsz": "16", "num_updates": "100", '
        '"lr": "0.0001", "gnorm": "1.2", "wall": "50"}\n'
        "2024-05-01 11:00:00 | INFO | fairseq_cli.train | done training in 3600.5 seconds\n"
    )
    states: Mapping[str, Scope] = {
        "loss": "global",
        "tokens_per_second": "global",
        "samples": "global",
        "grad_norm": "global",
        "learning_rate": "global",
        "step_time": "global",
        "time_to_train": "global",
    }
    wants_next = False

    def __init__(self) -> None:
        self._last = 0

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of an interval, or the time of the whole training."""
        text = line.text
        done = _DONE.search(text)
        took = number(done[1]) if done else None
        if took is not None:
            yield Hit("time_to_train", took, "global", once="done")
            return
        found = dict((_JSON if '"wps": ' in text else _SIMPLE).findall(text))
        place = _PLACE.search(text)
        if "wps" not in found or not ("ups" in found or place):
            return
        update = _update(found, place)
        if update is None:
            yield Unreadable()
        elif update:
            yield from self._interval(found, update)

    def _interval(self, found: dict[str, str], update: int) -> Iterator[Hit]:
        steps = update - self._last if 0 < self._last < update else 1
        self._last = update
        values = {_METRICS[name]: number(found[name]) for name in _METRICS if name in found}
        values["step_time"] = _step_time(found)
        for metric, value in values.items():
            # The first line of a run has no interval, and prints 0.
            if value is not None and not (metric == "tokens_per_second" and value == 0):
                yield Hit(metric, value, "global", update, steps=steps, once=f"{update}")


def _update(found: dict[str, str], place: re.Match[str] | None) -> int | None:
    """Return the number of the update; 0 before the first, None if unknown."""
    stated = number(found.get("num_updates", ""))
    if stated is not None:
        return int(stated) if 0 <= stated < 1e15 else None
    if place is None or "num_updates" in found:
        return None
    epoch, done, total = (int(part) for part in place.groups())
    return (epoch - 1) * total + done if epoch else None


def _step_time(found: dict[str, str]) -> float | None:
    rate, tokens = number(found["wps"]), number(found.get("wpb", ""))
    if rate and tokens:
        return quotient(tokens, rate)
    updates = number(found.get("ups", ""))
    return quotient(1, updates) if updates else None
