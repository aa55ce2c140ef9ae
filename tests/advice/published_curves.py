"""Published curves, of which the first points forecast the last one, two and four times as large.

Sources of the tables: `tests.scaling.published_tables`. The rule that refuses a forecast without
enough sizes is applied separately.
"""

from collections.abc import Iterator
from typing import NamedTuple

from hpc_train.advice.step_time import SizeRate, forecast_rate, refusal
from tests.scaling.published_tables import rows_of

_DDP = [f"ddp_{name}" for name in ("resnet50", "resnet101", "resnext50", "resnext101")]
CURVES = (
    *_DDP,
    *(f"{name}_against_no_ddp" for name in _DDP),
    "dlperf_resnet50",
    "dlperf_bert",
    "dlperf_bert_amp",
    "nvidia_bert_fp16_s128",
    "nvidia_bert_tf32_s128",
    "nvidia_bert_fp16_s512",
    "nvidia_bert_tf32_s512",
    "mpt_1b_a100",
    "mpt_1b_h100",
    "mpt_7b_h100",
)
_RATES = ("samples_per_second", "tokens_per_second")


class Continued(NamedTuple):
    """A published rate, and its forecast from the sizes that are at least `times` smaller."""

    curve: str
    times: int
    ranks: int
    rate: float
    forecast: tuple[float, float, float]
    refused: bool

    @property
    def error(self) -> float:
        """The relative error of the forecast."""
        return self.forecast[0] / self.rate - 1

    @property
    def held(self) -> bool:
        """Whether the published rate is inside the band."""
        return self.forecast[1] <= self.rate <= self.forecast[2]


def curve_of(name: str) -> list[SizeRate]:
    """Return the rates of a published table in ascending order."""
    found = []
    for row in rows_of(name):
        nodes, ranks = int(row["nodes"]), int(row["nodes"]) * int(row["tasks_per_node"])
        rate = next(float(row[key]) for key in _RATES if key in row)
        found.append(SizeRate(ranks, nodes, rate))
    return sorted(found)


def continued(times: int) -> Iterator[Continued]:
    """Yield the last point of each curve and its forecast."""
    for name in CURVES:
        whole = curve_of(name)
        last = whole[-1]
        known = [one for one in whole if one.ranks * times <= last.ranks]
        found = forecast_rate(known, last.ranks)
        refused = refusal(known, last.ranks) is not None
        yield Continued(name, times, last.ranks, last.rate, found, refused)
