"""The first lines of a report say what the order of its runs shows."""

from __future__ import annotations

from hpc_train.model.report import Report
from hpc_train.reports.run_order_caveats import with_order_caveats
from hpc_train.tables.run_order import RunOrder

REPORT = Report(title="s", summary=("2 ranks train 1.9 times as fast as 1 rank.",), tables=())


def test_a_drift_and_an_autocorrelation_come_first() -> None:
    found = with_order_caveats(REPORT, RunOrder(drift=0.9, autocorrelation=0.612)).summary
    assert found[0].startswith("Caveats: the speed drifted by -10 % from the first run to the last")
    assert "(autocorrelation 0.61, p < 0.025)" in found[1]
    assert found[2:] == REPORT.summary


def test_independent_runs_have_no_caveat() -> None:
    assert with_order_caveats(REPORT, RunOrder(one_session=("all",))).summary == REPORT.summary
