"""Paddle's suites: PaddleDetection, -OCR, -Clas, -Seg, -Video, and PaddleNLP's scripts.

| field | metric | unit | scope |
|---|---|---|---|
| `batch_cost`, `avg_batch_cost` | step_time, mean since the previous line | s | per rank |
| `ips` of samples, images, instances | samples_per_second, likewise | 1/s | per rank |
| `ips` in tokens/s, beside `ips_total` | tokens_per_second, likewise | 1/s | per GPU |
| `ips_total` in tokens/s | tokens_per_second, likewise | 1/s | global |
| `loss` | loss, of the printing rank | 1 | per rank |
| `lr`, `learning_rate` | learning_rate | 1 | global |

PaddleClas (`[Train][Epoch 1/10][Iter: 10/100]`) prints means since the fifth iteration of the
epoch: variant running_average. Each process drives one GPU, and its `ips` is the batch of that
process divided by the time. Tokens/s without `ips_total` are omitted, because some scripts print
the rate of all ranks and others that of one. PaddleVideo prints the time of one step. Lines of an
evaluation are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.key_value_fields import Field
from hpc_train.records.parsing.log_parser import Hit, Unreadable
from hpc_train.records.parsing.printed_numbers import NUMBER, number
from hpc_train.records.parsing.step_counts import Intervals, RunningStep

_PLACE = re.compile(
    r"\[Train\]\[Epoch {1,6}(?P<clas>\d{1,9})/\d{1,9}\]\[Iter:? {1,8}(?P<i1>\d{1,9})/\d{1,9}\]"
    r"|\bEpoch: \[(?P<det>\d{1,9})\] \[ {0,8}(?P<i2>\d{1,9})/(?P<total>\d{1,9})\]"
    r"(?= learning_rate: )"
    r"|\bepoch:\[ {0,6}(?P<video>\d{1,9})/\d{1,9} {0,6}\] train step:(?P<i3>\d{1,12}) "
    r"|\bepoch: \[(?P<ocr>\d{1,9})/\d{1,9}\], iter: (?P<i4>\d{1,12}),"
    r"|\[Epoch (?P<other>\d{1,9}), iter: (?P<i5>\d{1,9})\]"
    r"|\bepoch: \[\d{1,9}/\d{1,9}\], global_step: (?P<step1>\d{1,12}),"
    r"|\bglobal step (?P<step2>\d{1,12}), epoch: \d{1,9},"
    r"|\[TRAIN\] epoch: \d{1,9}, iter: (?P<step3>\d{1,12})/\d{1,12},"
)
_FIELD = re.compile(
    r"(?:[,\s\]]|^)(?P<key>(?:learning )?[a-z_]{2,16})(?:\(\w{1,40}\))?:"
    rf" {{1,4}}(?P<value>{NUMBER})(?P<unit> ?[a-z]{{1,12}}(?:/s(?:ec)?)?)?(?=(?P<end>,|\s|\.?$))"
)
_DECIMALS = re.compile(r"\.\d{4}")
_EXPONENT = re.compile(r"e[-+]\d\d$")
_RATE = Field("learning_rate", "global")
_TIME = Field("step_time", "per_rank", mean=True)
_IPS = Field("samples_per_second", "per_rank", mean=True)
_FIELDS = {
    "batch_cost": _TIME,
    "avg_batch_cost": _TIME,
    "ips": _IPS,
    "avg_ips": _IPS,
    "loss": Field("loss", "per_rank", mean=True),
    "lr": _RATE,
    "learning_rate": _RATE,
    "learning rate": _RATE,
}
_TOTAL = Field("tokens_per_second", "global", mean=True)
_OF_ONE = Field("tokens_per_second", "per_gpu", mean=True)
_SAMPLES = ("samples", "images", "instance", "instances", "sequences", "ins")


class Paddle:
    """Parser of the training lines; remembers the position of the training."""

    title = "PaddleDetection, PaddleOCR, PaddleClas, PaddleSeg, PaddleVideo, PaddleNLP's scripts"
    literals = (b"batch_cost: ",)
    sample = (
        "[05/01 10:00:00] ppdet.engine INFO: Epoch: [1] [ 20/157] learning_rate: 0.000042 "
        "loss: 1.623144 loss_cls: 0.784792 eta: 0:33:30 batch_cost: 0.4564 data_cost: 0.0005 "
        "ips: 17.5284 images/s\n"
        "[2022-07-27 12:42:47,102] [    INFO] - global step 2, epoch: 0, batch: 1, "
        "loss: 11.030861855, avg_reader_cost: 0.00016 sec, avg_batch_cost: 0.50125 sec, "
        "speed: 2.00 step/s, ips_total: 16343 tokens/s, ips: 16343 tokens/s, "
        "learning rate: 8.33333e-09\n"
    )
    states: Mapping[str, Scope] = {
        "learning_rate": "global",
        "loss": "per_rank",
        "step_time": "per_rank",
        "samples_per_second": "per_rank",
        "tokens_per_second": "per_gpu",
    }
    wants_next = False

    def __init__(self) -> None:
        self._running = RunningStep()
        self._intervals = Intervals()

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the fields of a training step."""
        place = _PLACE.search(line.text)
        if place is None:
            return
        found = {m["key"]: m for m in _FIELD.finditer(line.text, place.end() - 1)}
        if not {"batch_cost", "avg_batch_cost"} & found.keys():
            yield Unreadable()
            return
        step = self._step(place)
        steps = self._intervals.since(line, step)
        steps = 1 if place["video"] or place["clas"] else steps
        for key, match in found.items():
            field, value = _field(key, match, "ips_total" in found), number(match["value"])
            # A rate that is too low for six decimals is printed as 0.
            is_lost = field is _RATE and value == 0
            if field is None or value is None or is_lost or not _whole(match):
                continue
            variant = "running_average" if place["clas"] and field.mean else ""
            mean = steps if field.mean else 1
            yield Hit(field.metric, value, field.scope, step, steps=mean, variant=variant)

    def _step(self, place: re.Match[str]) -> int:
        """Return the number of the step within the run."""
        found = {name: int(text) for name, text in place.groupdict().items() if text}
        for name in ("step1", "step2", "step3"):
            if name in found:
                return found[name]
        if "det" in found:
            # Iterations and epochs count from 0.
            return found["det"] * found["total"] + found["i2"] + 1
        epoch = next(found[name] for name in ("clas", "video", "ocr", "other") if name in found)
        done = next(found[name] for name in ("i1", "i3", "i4", "i5") if name in found)
        return self._running.at(epoch, done).step


def _whole(match: re.Match[str]) -> bool:
    """Return whether a number is complete: text follows it, or it has all its decimals."""
    if match["key"] == "learning rate":
        return bool(_EXPONENT.search(match["value"]))
    return bool(match["end"] or match["unit"] or _DECIMALS.search(match["value"]))


def _field(key: str, match: re.Match[str], total: bool) -> Field | None:
    """Return the field of a key; the field of a rate depends on its unit."""
    unit = (match["unit"] or "").strip().partition("/")[0]
    if key == "ips_total":
        return _TOTAL if unit == "tokens" else None
    field = _FIELDS.get(key)
    if field is not _IPS or unit in _SAMPLES or (not unit and match["end"] in ("", ",")):
        return field
    return _OF_ONE if unit == "tokens" and total else None
