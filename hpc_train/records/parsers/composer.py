"""Composer and LLM Foundry: the console logger's blocks, `[batch=n/N]:` and a line per metric.

| line, after `Train ` | metric | unit | scope |
|---|---|---|---|
| `throughput/tokens_per_sec` and `samples_per_sec` | as named, a running mean | 1/s | global |
| `throughput/device/...` | the same, and `mfu` as a fraction, `flops_per_sec` | | per GPU |
| `loss/train/total` | loss | 1 | global |
| `memory/peak_reserved_mem` | memory, printed in GB | GiB | per rank |
| `lr-<optimizer>/group0` | learning_rate | 1 | global |

The batch number in the header of a block counts from 1. If the header counts within an epoch, or
in tokens, the batch is read from the line `time/batch`, which counts from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.key_value_fields import Field
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.printed_numbers import number, scaled

_HEAD = re.compile(
    r"\[(?:epoch=(?P<epoch>\d{1,9})\]\[)?batch=(?P<batch>\d{1,15})(?:/(?P<of>\d{1,15}))?\]:?"
)
_OTHER_HEAD = re.compile(r"\[(?:iteration|sample|second|token)=\d{1,20}[^]]{0,40}\]")
_BEGUN = re.compile(r"^\s*Train time/batch: (\d{1,14})")
# With fewer decimals, a number was cut.
_ROW = re.compile(r"^\s*Train (?P<key>[\w/.-]{1,120}): (?P<value>-?\d{1,30}\.\d{4}(?:E[-+]\d\d)?)")
_LEARNING_RATE = re.compile(r"lr-\w{1,80}/group0")
_FIELDS = {
    "throughput/tokens_per_sec": Field("tokens_per_second", "global"),
    "throughput/samples_per_sec": Field("samples_per_second", "global"),
    "throughput/device/tokens_per_sec": Field("tokens_per_second", "per_gpu"),
    "throughput/device/samples_per_sec": Field("samples_per_second", "per_gpu"),
    "throughput/device/flops_per_sec": Field("tflops", "per_gpu", 1e-12),
    "throughput/device/mfu": Field("mfu", "per_gpu"),
    "memory/peak_reserved_mem": Field("memory", "per_rank", 1e9 / 2**30),
    "loss/train/total": Field("loss", "global"),
}


class Composer:
    """Parser of the console logger's blocks."""

    title = "Composer, LLM Foundry"
    literals = (
        b"[batch=",
        b"[iteration=",
        b"[sample=",
        b"[second=",
        b"[token=",
        b"Train time/batch: ",
        b"Train throughput/",
        b"Train loss/train/total: ",
        b"Train memory/peak_reserved_mem: ",
        b"Train lr-",
    )
    sample = (
        "[batch=20/4800]:\n"
        "\t Train time/batch: 19\n"
        "\t Train memory/peak_reserved_mem: 42.5000\n"
        "\t Train loss/train/total: 7.2500\n"
        "\t Train throughput/device/tokens_per_sec: 5120.5000\n"
        "\t Train throughput/device/mfu: 0.4100\n"
        "\t Train lr-DecoupledAdamW/group0: 0.0001\n"
    )
    states: Mapping[str, Scope] = {
        "memory": "per_rank",
        "loss": "global",
        "tokens_per_second": "per_gpu",
        "mfu": "per_gpu",
        "learning_rate": "global",
    }
    wants_next = False

    def __init__(self) -> None:
        self._step: int | None = None

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the metric of a row; remember the batch of a header."""
        text = line.text
        if head := _HEAD.search(text):
            self._step = _batch(head)
        elif _OTHER_HEAD.search(text):
            self._step = None
        elif begun := _BEGUN.fullmatch(text):
            self._step = int(begun[1]) + 1
        row = _ROW.fullmatch(text)
        field = _field(row["key"]) if row else None
        value = number(row["value"]) if row else None
        if field is not None and value is not None:
            yield Hit(field.metric, scaled(value, field.scale), field.scope, self._step)


def _field(key: str) -> Field | None:
    if _LEARNING_RATE.fullmatch(key):
        return Field("learning_rate", "global")
    return _FIELDS.get(key)


def _batch(head: re.Match[str]) -> int | None:
    if head["epoch"] is None:
        return int(head["batch"])
    if head["of"] is None:
        return None
    return (int(head["epoch"]) - 1) * int(head["of"]) + int(head["batch"])
