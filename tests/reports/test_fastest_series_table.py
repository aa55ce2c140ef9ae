"""A report of several strategies: the headline names the fastest, not the one that scales best."""

import pytest

from hpc_train.jobs.study import Gates
from hpc_train.reports import text
from hpc_train.reports.report import Report
from hpc_train.reports.scaling_report import scaling_report
from tests.scaling.strategies import SLOW_AND_FAST, Tables, tables


def made(found: Tables) -> Report:
    return scaling_report(found.study, found.runs, found.points, found.fastest)


@pytest.fixture(scope="module", name="report")
def _report() -> Report:
    return made(tables(SLOW_AND_FAST, gates=Gates(efficiency=0.75)))


def test_the_fastest_series_is_named_first_and_how_much_slower_the_others_are(
    report: Report,
) -> None:
    """B is 2.1 times as fast as A: A is 1 - 1/2.1 = 52.4 % slower."""
    fast, slow = report.answer
    assert fast.startswith("B: 8 GPUs 1680 samples/s, 5.60 [")
    assert fast.endswith("] times 1 GPU, efficiency 70 %.")
    assert slow.startswith("A: 52 % slower [")
    assert "] at 8 GPUs." in slow
    heads = {column.key: column.heading for column in report.tables[0].columns}
    assert heads["speedup"].startswith("own-series\n")
    assert heads["efficiency"].startswith("own-series\n")


def test_a_smaller_size_may_have_another_fastest_and_failures_are_told() -> None:
    crossing = {"A": lambda n: 100.0 * n, "B": lambda n: 150.0 * n**0.5}
    found = made(tables(crossing, failed=[("B", 8)]))
    first, second = found.answer
    assert first.startswith("A: 8 GPUs 799.9 samples/s")
    assert second.startswith("B: no result at 8 GPUs (3 FAILED); 4 GPUs 30")
    assert [row[-1] for row in found.tables[1].rows] == [
        "yes", "yes", "yes", "no result (3 FAILED)",
    ]  # fmt: skip
    assert made(tables(crossing)).answer[1].endswith("] at 8 GPUs; faster at 1 and 2 GPUs.")


def test_a_difference_that_is_noise_is_not_called_one() -> None:
    close = {"A": lambda n: 100.0 * n, "B": lambda n: 100.5 * n}
    found = made(tables(close))
    assert found.answer[1] == ("A: no difference seen at 1, 2, 4 and 8 GPUs.")
    assert {row[-1] for row in found.tables[1].rows} == {"no"}
    assert any("98.75 % (Holm: 4 pairs" in note for note in found.notes)


def test_of_many_series_the_first_screen_has_the_fastest() -> None:
    laws = {name: lambda n, i=i: 100.0 * n / (1 + 0.1 * i) for i, name in enumerate("ABCDEFGHIJ")}
    found = made(tables(laws, noise=(0.999, 1.0, 1.001)))
    first, others = found.answer
    assert first.startswith("A: 8 GPUs 800.0 samples/s")
    assert others == "9 other series: see the table."
    lines = text.first_screen(found).splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 100
    assert sum(len(line.split()) for line in found.answer) <= 40
