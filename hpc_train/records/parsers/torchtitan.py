"""torchtitan: `step: n  loss: ..  memory: ..  tps: ..  tflops: ..  mfu: ..%`.

| field | metric | unit | scope |
|---|---|---|---|
| loss, grad_norm | loss, grad_norm, of the last step | 1 | global, printed by every rank |
| memory | memory, peak since the last line | GiB | per rank |
| tps (older: wps) | tokens_per_second, mean since the last line | 1/s | per GPU |
| tflops | tflops, likewise | TFLOP/s | per GPU |
| mfu | mfu, likewise, as a fraction | 1 | per GPU |

Values of `validate step:` lines have the variant validation. The sizes that the trainer prints and
the degrees of the device mesh are global. In a coloured word-diff of two logs, the new values are
read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line, clean, peel
from hpc_train.records.parsing.key_value_fields import Field
from hpc_train.records.parsing.log_parser import OF_LINE, Hit, Unreadable
from hpc_train.records.parsing.printed_numbers import NUMBER, number, scaled
from hpc_train.records.parsing.step_counts import Intervals

_STEP = re.compile(r"(?P<validate>validate )?\bstep: {1,12}(?P<step>\d{1,15})  (?=[a-z_]{1,40}: )")
_VALUE = re.compile(
    rf"\b(?P<key>[a-z_]{{1,40}}): {{1,12}}(?P<value>{NUMBER})(?:GiB|%)?(?P<end>\(|  |\s*$)"
)
# The last field of a complete line: after a number, truncation cannot be detected.
_LAST = re.compile(r"\bmfu: {1,12}(?:\S{1,20}%|N/A)")
_LAST_OF_VALIDATION = re.compile(r"\btps: {1,12}\d{1,3}(?:,\d{3}){0,5}\s*$")
# In a word-diff: removed text that is followed by its replacement.
_OLD = re.compile(rb"\x1b\[31m[^\x1b\r\n]{1,200}(?:\x1b\[39m)?\x1b\[m(?=\x1b\[32m)")
_SIZES = re.compile(
    r"\blocal batch size \d{1,12}, global batch size (?P<batch>\d{1,12})"
    r"(?:, gradient accumulation steps \d{1,9})?, sequence length (?P<length>\d{1,12}),"
)
_DEGREES = re.compile(r"\bdevice mesh with parallelism: (?P<degrees>[a-z_=\d, ]{1,200})")
_MESH = re.compile(r"\b\d-D device mesh with \[[^]]{0,200}\], \[(?P<degrees>[\d, ]{0,80})\]")
_DEGREE = re.compile(r"\b(?:pp|dp_replicate|dp_shard|cp|tp)=(\d{1,9})\b")
_RANK = re.compile(r"\[rank-(\d{1,7})/\d{1,7}\]")
_TOKENS = Field("tokens_per_second", "per_gpu", mean=True)
_FIELDS = {
    "loss": Field("loss", "global"),
    "grad_norm": Field("grad_norm", "global"),
    "memory": Field("memory", "per_rank"),
    "tps": _TOKENS,
    "wps": _TOKENS,
    "tflops": Field("tflops", "per_gpu", mean=True),
    "mfu": Field("mfu", "per_gpu", 1e-2, mean=True),
}


class Torchtitan:
    """Parser of torchtitan's lines."""

    title = "torchtitan"
    literals = (b"tps: ", b"wps: ", b"local batch size ", b"device mesh with ")
    sample = (
        "[rank0]:[titan] 2025-01-01 10:00:00,000 - root - INFO - step: 10  loss:  5.1234  "
        "grad_norm:  1.2500  memory: 40.25GiB(50.88%)  tps: 8,123  tflops: 401.20  mfu: 40.57%"
    )
    states: Mapping[str, Scope] = {
        "loss": "global",
        "grad_norm": "global",
        "memory": "per_rank",
        "tokens_per_second": "per_gpu",
        "tflops": "per_gpu",
        "mfu": "per_gpu",
    }
    wants_next = False

    def __init__(self) -> None:
        self._intervals = Intervals()

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the fields of a step, or the sizes of the job."""
        text = _new(line)
        if match := _STEP.search(text):
            yield from self._step(line, text, match)
        elif match := _SIZES.search(text):
            for metric, group in (("global_batch_size", "batch"), ("sequence_length", "length")):
                yield Hit(metric, float(match[group]), "global", once=metric)
        elif match := _DEGREES.search(text):
            yield _world(_DEGREE.findall(match["degrees"]))
        elif match := _MESH.search(text):
            yield _world(re.findall(r"\d{1,9}", match["degrees"]))

    def _step(self, line: Line, text: str, head: re.Match[str]) -> Iterator[Hit | Unreadable]:
        step, variant = int(head["step"]), "validation" if head["validate"] else ""
        steps = 1 if variant else self._intervals.since(line, step)
        whole = (_LAST_OF_VALIDATION if variant else _LAST).search(text, head.end())
        named = _RANK.search(text)
        rank = int(named[1]) if named else _rank(line)
        for match in _VALUE.finditer(text, head.end()):
            field = _FIELDS.get(match["key"])
            value = number(match["value"])
            if field is None or value is None or not (whole or match["end"] in ("  ", "(")):
                continue
            # Pipeline stages that do not compute the loss.
            if match["key"] == "loss" and value == -1:
                continue
            yield Hit(
                field.metric,
                scaled(value, field.scale),
                field.scope,
                step,
                rank,
                steps=steps if field.mean else 1,
                variant=variant,
                once=f"{variant} {step}" if field.scope == "global" else "",
            )
        if not whole:
            yield Unreadable()


def _rank(line: Line) -> int | None:
    """Return the rank; None if the prefix has a local rank, below an agent with another label."""
    prefix = line.prefix
    return OF_LINE if prefix.task in (None, prefix.rank) else None


def _world(degrees: list[str]) -> Hit:
    size = math.prod(int(degree) for degree in degrees)
    return Hit("world_size", float(size), "global", once="world_size")


def _new(line: Line) -> str:
    if b"\x1b[m\x1b[32m" not in line.raw:
        return line.text
    return peel(clean(_OLD.sub(b"", line.raw))).rest
