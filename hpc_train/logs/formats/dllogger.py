"""NVIDIA's DLLogger: `DLL <time> - (<epoch>, <step>) <name> : <value> <unit>`, and `DLLL {json}`.

Rank 0 prints for the whole job: all values are global. A script may choose any names; the names
that NVIDIA's examples use are read. Rates are in 1/s. Times are in s unless the unit `ms` follows
the value or is given in the metadata. `top1` is a percentage. Values of the validation are ignored,
except the accuracy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.logs.formats.base import Coded, Hit, RunningStep, Unreadable
from hpc_train.logs.formats.number import NUMBER, finite, number, scan_object, whole
from hpc_train.logs.line import Line

_TEXT = re.compile(r"DLL \d{4}-\d\d-\d\d [\d:.]{5,20} - (?P<rest>.*)")
_TUPLE = re.compile(r"\((?P<parts>(?:\d{1,12}, ?){0,4}(?:\d{1,12})?)\)")
_WORDS = re.compile(
    r"(?:(?:Training )?Epoch: ?(?P<epoch>\d{1,9}))?"
    r"(?:\s*(?:Training )?(?:Iteration|Step): ?(?P<step>\d{1,12}))?"
)
_PAIR = re.compile(
    rf"(?P<name>[^\s:]{{1,80}}) : (?P<value>{NUMBER})(?!\S)"
    r"(?: (?P<unit>[^\s:]{1,24})(?!\S)(?! :))?"
)
_NOT_TRAINING = re.compile(
    r"(?:^|[._-])(?:val|valid|validation|eval|evaluation|test|infer|inference)"
)
_FACTORS = {"ms": 1e-3, "msec": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}


class DlLogger(Coded):
    """Parser of both back ends of DLLogger."""

    def __init__(self) -> None:
        self._steps = RunningStep()
        self._units: dict[str, str] = {}

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the known values of one call of the logger."""
        text = line.text
        start = text.find("DLLL {")
        if start >= 0:
            yield from self._json(text, start + len("DLLL "))
            return
        match = _TEXT.search(text)
        if match is None:
            return
        place, rest = _place(match["rest"])
        step = self._step(place)
        for pair in _PAIR.finditer(rest):
            value = number(pair["value"])
            if value is not None:
                yield from self._hits(pair["name"], value, pair["unit"] or "", step)

    def _json(self, text: str, start: int) -> Iterator[Hit | Unreadable]:
        found = scan_object(text, start)
        if found is None:
            yield Unreadable()
            return
        call, _ = found
        name, metadata, values = call.get("metric"), call.get("metadata"), call.get("data")
        if isinstance(name, str) and isinstance(metadata, dict):
            self._units[name] = str(metadata.get("unit") or "")
        place = call.get("step")
        if not isinstance(values, dict) or place == "PARAMETER":
            return
        step = self._step(place) if isinstance(place, list) else whole(place)
        for key, raw in values.items():
            value = number(raw) if isinstance(raw, str) else finite(raw)
            if value is not None:
                yield from self._hits(key, value, "", step)

    def _step(self, place: list[object]) -> int | None:
        """Return the step of `(epoch, step)`; both count from 0 or 1, depending on the script."""
        if len(place) != 2 or (step := whole(place[1])) is None:
            return None
        return self._steps.at(place[0], step).step

    def _hits(self, name: str, value: float, unit: str, step: int | None) -> Iterator[Hit]:
        short = name.rpartition(".")[2].lower()
        if _NOT_TRAINING.search(name.lower()) and not short.startswith(("top1", "accuracy")):
            return
        unit = unit or self._units.get(name, "")
        if short in ("top1", "accuracy") and not name.lower().startswith("train"):
            percent = short == "top1" or unit == "%"
            if 0 <= value <= (100 if percent else 1):
                yield Hit("accuracy", value / 100 if percent else value, "global", step)
            return
        if short in self.fields:
            yield self.fields[short]._replace(scale=_FACTORS.get(unit, 1.0)).hit(value, step)


def _place(text: str) -> tuple[list[object], str]:
    """Split the step of a call from its values."""
    tuple_ = _TUPLE.match(text)
    if tuple_:
        parts: list[object] = [int(part) for part in tuple_["parts"].split(",") if part.strip()]
        return parts, text[tuple_.end() :]
    words = _WORDS.match(text)
    if words and words[0]:
        place = [words["epoch"] or "0", words["step"]] if words["step"] else []
        return [int(part) for part in place], text[words.end() :]
    # Parameters are not measurements.
    return [], "" if text.startswith("PARAMETER") else text
