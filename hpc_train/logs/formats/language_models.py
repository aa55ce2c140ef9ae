"""Programs that train language models: torchtitan and fairseq."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import msgspec

from hpc_train.logs.formats.base import OF_LINE, Coded, Hit, Intervals, Unreadable
from hpc_train.logs.formats.number import NUMBER, VALUE, countable, number, quotient
from hpc_train.logs.line import Line, clean, peel

# torchtitan: `step: n  loss: ..  memory: ..  tps: ..  tflops: ..  mfu: ..%`.

_STEP = re.compile(r"(?P<validate>validate )?\bstep: {1,12}(?P<step>\d{1,15})  (?=[a-z_]{1,40}: )")
_VALUE = re.compile(
    rf"\b(?P<key>[a-z_]{{1,40}}): {{1,12}}(?P<value>{NUMBER})(?:GiB|%)?(?P<end>\(|  |\s*$)"
)
# The last field of a complete line: after a number, truncation cannot be detected.
_LAST = re.compile(r"\bmfu: {1,12}(?:\S{1,20}%|N/A)")
_LAST_OF_VALIDATION = re.compile(r"\btps: {1,12}\d{1,3}(?:,\d{3}){0,5}\s*$")
# In a coloured word-diff of two logs: removed text that is followed by its replacement.
_OLD = re.compile(rb"\x1b\[31m[^\x1b\r\n]{1,200}(?:\x1b\[39m)?\x1b\[m(?=\x1b\[32m)")
_SIZES = re.compile(
    r"\blocal batch size \d{1,12}, global batch size (?P<batch>\d{1,12})"
    r"(?:, gradient accumulation steps \d{1,9})?, sequence length (?P<length>\d{1,12}),"
)
_DEGREES = re.compile(r"\bdevice mesh with parallelism: (?P<degrees>[a-z_=\d, ]{1,200})")
_MESH = re.compile(r"\b\d-D device mesh with \[[^]]{0,200}\], \[(?P<degrees>[\d, ]{0,80})\]")
_DEGREE = re.compile(r"(?:\b(?:pp|dp_replicate|dp_shard|cp|tp)=|(?<![=\d]))(\d{1,9})\b")
_RANK = re.compile(r"\[rank-(\d{1,7})/\d{1,7}\]")


class Torchtitan(Coded):
    """Parser of torchtitan's lines."""

    def __init__(self) -> None:
        self._intervals = Intervals()

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the fields of a step, or the sizes of the job."""
        text, raw = line.text, line.raw
        if b"\x1b[m\x1b[32m" in raw:
            text = peel(clean(_OLD.sub(b"", raw))).rest
        if match := _STEP.search(text):
            yield from self._step(line, text, match)
        elif match := _SIZES.search(text):
            for metric, group in (("global_batch_size", "batch"), ("sequence_length", "length")):
                yield Hit(metric, float(match[group]), "global", once=metric)
        elif match := _DEGREES.search(text) or _MESH.search(text):
            size = math.prod(map(int, _DEGREE.findall(match["degrees"])))
            yield Hit("world_size", float(size), "global", once="world_size")

    def _step(self, line: Line, text: str, head: re.Match[str]) -> Iterator[Hit | Unreadable]:
        step, variant = int(head["step"]), "validation" if head["validate"] else ""
        steps = 1 if variant else self._intervals.since(line, step)
        whole = (_LAST_OF_VALIDATION if variant else _LAST).search(text, head.end())
        named = _RANK.search(text)
        # A prefix with a local rank below an agent with another label does not state the rank.
        prefix = line.prefix
        of_line = OF_LINE if prefix.task in (None, prefix.rank) else None
        rank = int(named[1]) if named else of_line
        for match in _VALUE.finditer(text, head.end()):
            field, value = self.fields.get(match["key"]), number(match["value"])
            if field is None or value is None or not (whole or match["end"] in ("  ", "(")):
                continue
            # Pipeline stages that do not compute the loss.
            if match["key"] != "loss" or value != -1:
                once = f"{variant} {step}" if field.scope == "global" else ""
                yield field._replace(variant=variant, once=once).hit(value, step, steps, rank)
        if not whole:
            yield Unreadable()


# fairseq and metaseq, all forms of `train_inner`: json, simple, tqdm, hydra's or own line prefix.

_JSON = re.compile(rf'"(\w{{1,40}})": "?{VALUE}(?=["}},])')
_SIMPLE = re.compile(rf"[ ,](\w{{1,40}})={VALUE}(?=[,\]\s]|$)")
_DONE = re.compile(r"done training in (" + NUMBER + ") seconds")


class Fairseq(Coded):
    """Parser of the lines; remembers the last update."""

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
        if "wps" not in found or "ups" not in found:
            return
        update = countable(number(found.get("num_updates", "")))
        if update is None or update < 0:
            yield Unreadable()
        elif update:
            steps = update - self._last if 0 < self._last < update else 1
            self._last = update
            # The first line of a run has no interval, and prints 0.
            values = {key: text for key, text in found.items() if key != "wps" or number(text) != 0}
            for hit in self.stated({**values, "time": _step_time(found)}, update, steps):
                yield msgspec.structs.replace(hit, once=f"{update}")


def _step_time(found: dict[str, str]) -> float | None:
    rate, tokens, updates = (number(found.get(key, "")) for key in ("wps", "wpb", "ups"))
    if rate and tokens:
        return quotient(tokens, rate)
    return quotient(1, updates) if updates else None
