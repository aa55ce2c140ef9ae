"""Values that are not possible are refused, whichever parser gave them, and can be seen."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from hpc_train.base.metrics import UNITS
from hpc_train.jobs.log_selection import LogPattern
from hpc_train.logs.collect import collect, possible, wanted
from hpc_train.logs.read_log import ParseStats
from hpc_train.logs.record import LOT, Record, packs_of


def one(metric: str, value: float, unit: str = "", line: int = 1, **more: Any) -> Record:
    fields: dict[str, Any] = {"run": "r", "source": "r.log", "parser": "p", "scope": "global"}
    unit = unit or UNITS[metric]
    return Record(line=line, metric=metric, value=value, unit=unit, **{**fields, **more})


def series(
    values: Sequence[float], metric: str = "samples_per_second", **more: Any
) -> Iterator[Record]:
    return (one(metric, value, line=line, **more) for line, value in enumerate(values, 1))


def sound(records: Iterable[Record], census: ParseStats | None = None) -> list[Record]:
    packs = possible(packs_of(records), ParseStats() if census is None else census)
    return [record for pack in packs for record in pack.records()]


def kept(values: Sequence[float], metric: str = "samples_per_second") -> list[float]:
    return [record.value for record in sound(series(values, metric))]


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


@pytest.mark.parametrize("place", [0, 1, 5, 10])
def test_rate_a_thousand_times_its_neighbours(place: int) -> None:
    values = [500.0, 480.0, 510.0, 505.0, 490.0] * 2
    values.insert(place, 600_000.0)
    assert kept(values) == [value for value in values if value != 600_000]


@pytest.mark.parametrize("place", [0, 3, LOT - 1, LOT, LOT + 1, 9999])
def test_neighbours_across_lots(place: int) -> None:
    values = [500.0] * 10_000
    values.insert(place, 600_000.0)
    assert kept(values) == [500.0] * 10_000


def test_step_a_thousand_times_faster_than_its_neighbours() -> None:
    assert kept([2.0, 2.1, 0.0001, 1.9, 2.0], "step_time") == [2.0, 2.1, 1.9, 2.0]


@pytest.mark.parametrize(("high", "there"), [(1000.0, True), (1001.0, False)])
def test_a_rate_may_be_a_thousand_times_the_median(high: float, there: bool) -> None:
    assert (high in kept([0.5, 1.0, 1.0, 1.0, 1.0, high])) is there


def test_an_impossible_rate_is_no_neighbour_and_is_refused_for_what_it_is() -> None:
    census = ParseStats()
    sound(series([1.0, 1.0, 1.0, 1.0, float("inf")]), census)
    assert [text.split(":")[1] for text in census.refusals()] == [
        " samples_per_second is not above 0 and finite"
    ]


@pytest.mark.parametrize("first", [[30.0], [3000.0], [3000.0, 2500.0, 30.0]])
def test_slow_first_steps_and_stalls_are_kept(first: list[float]) -> None:
    values = [*first, *[1.0] * 20, 2000.0, *[1.0] * 20]
    assert kept(values, "step_time") == values
    rates = [1 / value for value in values]
    assert kept(rates) == rates


def test_two_trainings_in_one_file_are_kept() -> None:
    values = [3.0] * 20 + [60_000.0] * 20 + [3.0] * 20
    assert kept(values) == values


def test_a_few_values_do_not_judge_one_another() -> None:
    assert kept([500.0, 600_000.0, 510.0]) == [500.0, 600_000.0, 510.0]


def test_ranks_scopes_and_message_sizes_are_no_neighbours() -> None:
    rank = list(series([5.0] * 9, rank=1))
    other = [
        one("samples_per_second", 9000.0, rank=2),
        one("samples_per_second", 9000.0, rank=1, scope="per_gpu"),
        one("samples_per_second", 9000.0, rank=1, parser="q"),
        one("samples_per_second", 9000.0, rank=1, variant="running_average"),
    ]
    sizes = [one("busbw", 0.02 * 8**n, message_size=8**n) for n in range(12)]
    assert sound([*rank, *other, *sizes]) == [*rank, *other, *sizes]


def test_files_are_judged_apart() -> None:
    files = [one("samples_per_second", 5.0, source=f"{n}.log") for n in range(9)]
    files.insert(4, one("samples_per_second", 9000.0, source="x.log"))
    assert sound(files) == files


def test_a_reader_may_stop_early() -> None:
    endless = (one("loss", 1.0, line=line) for line in iter(int, 1))
    assert len(list(islice(possible(packs_of(endless), ParseStats()), 10))) == 10


def test_pattern_of_ones_own_is_checked(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("took 0 s, right 93.5\ntook 2 s, right 0.935\n")
    pattern = LogPattern(
        regex=r"took (?P<step_time>[\d.]+) s, right (?P<accuracy>[\d.]+)", scope="global"
    )
    census = ParseStats()
    found = collect("r", [tmp_path / "a.log"], wanted("pattern", "", [pattern]), census=census)
    assert [(record.metric, record.value) for record in found] == [
        ("step_time", 2.0),
        ("accuracy", 0.935),
    ]
    assert sum(seen.lines for seen in census.refused.values()) == 2


def test_events_are_checked(tmp_path: Path) -> None:
    values = [{"step": n, "step_time": 0.5, "mfu": 0.4} for n in range(1, 9)]
    values[3] |= {"step_time": 0, "mfu": 40.0}
    lines = [f"@hpct {json.dumps(value)}\n" for value in values]
    (tmp_path / "a.log").write_text("".join(lines))
    census = ParseStats()
    found = list(collect("r", [tmp_path / "a.log"], census=census))
    assert {record.step for record in found} == {1, 2, 3, 5, 6, 7, 8}
    assert sum(seen.lines for seen in census.refused.values()) == 2


def test_of_those_that_were_read_before_the_last_ones_are_neighbours() -> None:
    # One more than are looked at together; the first ones are 5,000 times smaller.
    values = [1.0] * 5 + [100.0] * 500 + [5000.0] * 520
    assert kept(values) == values


def test_a_rate_of_nothing_is_no_neighbour() -> None:
    values = [0.0, 0.0, 0.0, 5.0, 0.0, 0.0]
    assert kept(values, "busbw") == values


def test_three_neighbours_are_enough_and_two_are_not() -> None:
    assert kept([1.0, 1.0, 1.0, 2000.0]) == [1.0, 1.0, 1.0]
    assert kept([1.0, 1.0, 2000.0]) == [1.0, 1.0, 2000.0]
