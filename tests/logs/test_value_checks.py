"""Values that are not possible are refused, whichever parser gave them, and can be seen."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from hpc_train.base.metrics import UNITS
from hpc_train.jobs.log_selection import LogPattern
from hpc_train.logs.collect import collect, possible, wanted
from hpc_train.logs.read_log import ParseStats
from hpc_train.logs.record import Record, packs_of


def one(metric: str, value: float, unit: str = "", line: int = 1, **more: Any) -> Record:
    fields: dict[str, Any] = {"run": "r", "source": "r.log", "parser": "p", "scope": "global"}
    unit = unit or UNITS[metric]
    return Record(line=line, metric=metric, value=value, unit=unit, **{**fields, **more})


def sound(records: Iterable[Record], census: ParseStats | None = None) -> list[Record]:
    stats = ParseStats() if census is None else census
    return [one for pack in packs_of(records) for one in possible(pack, stats).records()]


@pytest.mark.parametrize("metric", ["accuracy", "mfu"])
@pytest.mark.parametrize("value", [1.5, 93.4, -0.01, float("nan"), float("inf")])
def test_fraction_outside_0_to_1(metric: str, value: float) -> None:
    census = ParseStats()
    assert sound([one(metric, value)], census) == []
    assert list(census.refusals()) == [
        f"r: {metric} is not from 0 to 1: 1 value refused, the first {value:g} (r.log:1)"
    ]


@pytest.mark.parametrize(
    "metric",
    [
        "step_time",
        "epoch_time",
        "time_to_train",
        "first_step_time",
        "latency",
        "samples_per_second",
    ],
)
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_time_or_rate_that_is_not_above_0(metric: str, value: float) -> None:
    census = ParseStats()
    assert sound([one(metric, value)], census) == []
    assert sum(seen.lines for seen in census.refused.values()) == 1


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("unit", ["s", "us", "1/s", "MB/s"])
def test_metric_of_ones_own_by_its_unit(unit: str, value: float) -> None:
    assert sound([one("reading", value, unit)]) == []
    assert sound([one("reading", value, "W")])


@pytest.mark.parametrize("metric", ["memory", "power", "energy"])
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), 1e308])
def test_amount_that_cannot_be(metric: str, value: float) -> None:
    census = ParseStats()
    assert sound([one(metric, value)], census) == []
    assert sum(seen.lines for seen in census.refused.values()) == 1
    assert sound([one(metric, 0.0)])


def test_what_is_possible_is_kept() -> None:
    records = [
        *(one("accuracy", 0.0), one("accuracy", 1.0), one("loss", -3.0), one("loss", 1e30)),
        *(one("phase_time", 0.0), one("busbw", 0.0), one("step_time", 1e-9)),
    ]
    census = ParseStats()
    assert sound(records, census) == records
    assert not census.refused


def test_pattern_of_ones_own_is_checked(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("took 0 s, right 93.5\ntook 2 s, right 0.935\n")
    pattern = LogPattern(
        regex=r"took (?P<step_time>[\d.]+) s, right (?P<accuracy>[\d.]+)", scope="global"
    )
    census = ParseStats()
    found = collect("r", [tmp_path / "a.log"], wanted("pattern", [pattern]), census=census)
    assert [(record.metric, record.value) for record in found] == [
        ("step_time", 2.0),
        ("accuracy", 0.935),
    ]
    assert sum(seen.lines for seen in census.refused.values()) == 2
