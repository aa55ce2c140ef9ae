"""The table of a target states only times whose start-up was recorded."""

from __future__ import annotations

from typing import Any

import pytest

from hpc_train.model.report import Report
from hpc_train.model.report_options import Target
from hpc_train.reports.target_table import with_target


def row(startup: float | None) -> dict[str, Any]:
    return {
        "series": "all", "nodes": 1, "ranks": 2, "global_batch": 8, "n_reached": 1, "n_ok": 1,
        "state": "reached", "samples_to_target": 80, "time_to_target_s": 12.0,
        "time_to_target_without_startup_s": 10.0, "startup_s": startup,
        "statistical_efficiency": None, "runs": [],
    }  # fmt: skip


@pytest.mark.parametrize(("startup", "time", "text"), [(2.0, 12.0, "12.00"), (None, None, "--")])
def test_a_time_with_an_unknown_start_up_is_unknown(
    startup: float | None, time: float | None, text: str
) -> None:
    report = Report(title="s", summary=(), tables=())
    (table,) = with_target(report, [row(startup)], Target(metric="loss", value=0.2)).tables
    (record,) = table.records
    assert record["time_to_target_s"] == time
    assert record["time_to_target_without_startup_s"] == 10.0
    place = [column.key for column in table.columns].index("time_to_target_s")
    assert table.rows[0][place].text == text
