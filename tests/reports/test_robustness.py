"""Odd studies -> every table, format and figure, without a traceback or a warning."""

import json
from collections.abc import Sequence
from math import exp, inf, nan
from types import ModuleType

import pytest
from hypothesis import example, given, settings, strategies as st

from hpc_train.logs.record import Record
from hpc_train.reports import csv_table, json_report, markdown, text
from hpc_train.reports.figures import figures
from hpc_train.reports.figures.canvas import Measured
from hpc_train.reports.page import render
from hpc_train.reports.report import Report
from hpc_train.reports.scaling_report import scaling_report
from hpc_train.reports.tables import with_laws
from hpc_train.runs.expected_runs import ExpectedRun, ExpectedStudy
from hpc_train.scaling.measurements import node_frame
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.scaling_fits import fits
from hpc_train.scaling.speedup import speedup_frame
from tests.scaling.studies import expected, rate, record, steps, study

FORMATS: tuple[ModuleType, ...] = (text, markdown, render, csv_table, json_report)


def rendered(asked: ExpectedStudy, records: Sequence[Record], *, drawn: bool = True) -> Report:
    """Render a study in every format, draw it, and return its report."""
    runs = run_frame(asked, records)
    points = speedup_frame(runs, asked)
    report = scaling_report(asked, runs, points)
    report = with_laws(report, fits(points))
    shown = [form.render(report) for form in FORMATS]
    json.loads(shown[-1], parse_constant=pytest.fail)
    assert "nan" not in shown[0].replace("(NaN", "")
    if drawn:
        drawn_ones = figures(asked, Measured(runs, points, (), node_frame(asked, records)))
        assert all(one.images["png"].startswith(b"\x89PNG") for one in drawn_ones)
        sized = points["nodes"].notna() | points["ranks"].notna()
        assert bool(drawn_ones) == bool((sized & (points["n_ok"] > 0)).any())
    return report


def two() -> list[ExpectedRun]:
    return [expected("a"), expected("b", nodes=2)]


@pytest.mark.parametrize(
    "records",
    [
        [],
        [record("a", "loss", 1.0)],
        [record("a", "samples_per_second", 1e12), record("b", "samples_per_second", 2e12)],
        [record("a", "samples_per_second", 1e-12), record("b", "samples_per_second", 1e200)],
        [record("a", "world_size", 1e30), record("b", "world_size", 0.5)],
        [record("a", "epoch_time", 0, step=1, parser="book"), *rate("b", 1)],
        [record("a", "epoch_time", 9, step=1), record("b", "epoch_time", 0, step=1)],
        [record("a", "time_to_train", 1e12), record("b", "time_to_train", 1e-9)],
        [*steps("a", [[0.0] * 30]), *steps("b", [[1e300] * 30])],
        [*steps("a", [[1e-200] * 30]), *steps("b", [[1e12] * 30], samples=1e12)],
    ],
)
def test_odd_values_are_rows(records: list[Record]) -> None:
    report = rendered(study(two()), records, drawn=len(records) > 2)
    assert len(report.tables[0].records) == 2
    assert len(report.tables[-1].records) == 2


EXTREME = (0.0, 5e-324, 1e-100, 1.0, 1e100, 1.7976931348623157e308, -1.0, inf, nan)
values = st.lists(
    st.floats() | st.floats(1e-100, 1e100) | st.sampled_from(EXTREME), min_size=4, max_size=4
)
METRICS = (
    "samples_per_second", "tokens_per_second", "step_time", "samples", "epoch_time",
    "time_to_train", "first_step_time", "accuracy", "loss", "global_batch_size", "world_size",
    "mfu", "tflops", "memory", "learning_rate", "steps", "energy",
)  # fmt: skip


@settings(deadline=None, max_examples=15)
@given(st.dictionaries(st.sampled_from(METRICS), values, min_size=1, max_size=4))
# The lower limit of the speedup is the smallest float.
@example({"samples_per_second": [1.0, 1.0, exp(-58.58), exp(58.58)]})
@example({"step_time": [1e-100, 1e100, 1e100, 1e-100], "samples": [1e100] * 4})
@example({"samples_per_second": [1e-100] * 2 + [1e100] * 2})
def test_no_value_breaks_a_table(measured: dict[str, list[float]]) -> None:
    runs = [expected(f"n{nodes}-{i}", nodes=nodes) for nodes in (1, 2) for i in (0, 1)]
    records = [
        record(run.run_id, metric, value, step=1)
        for metric, own in measured.items()
        for run, value in zip(runs, own, strict=True)
    ]
    rendered(study(runs), records, drawn=False)


@pytest.mark.parametrize("odd", [nan, -inf])
def test_a_value_that_is_no_number_is_left_out_and_said(odd: float) -> None:
    records = [*steps("a", [[1.0, 1.0, odd, 1.0]]), *rate("b", 4), record("a", "loss", odd)]
    report = rendered(study(two()), records)
    assert report.tables[0].records[0]["throughput"]["value"] == pytest.approx(8)
    line = next(line for line in report.summary if "not finite" in line)
    assert "1 of step_time" in line
    assert "1 of loss" in line


@pytest.mark.process
def test_a_run_that_nobody_measured_leaves_only_absent_cells() -> None:
    report = rendered(study([expected("a", state="FAILED")]), [])
    assert report.summary[0] == "No run has a result: rank 1: exit code 3."
