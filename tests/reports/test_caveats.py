"""The column of transports, and the doubt where compared points went different ways."""

from collections.abc import Mapping, Sequence

import msgspec

from hpc_train.logs.record import Record
from hpc_train.reports.report import Report
from hpc_train.reports.scaling_report import scaling_report
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.caveats import with_implausible
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from tests.reports.finished import finished


def _built(study: ExpectedStudy, records: Sequence[Record]) -> Report:
    frame = with_implausible(run_frame(study, records))
    return scaling_report(study, frame, speedup_frame(frame, study))


def _with(study: ExpectedStudy, ways: Mapping[str, str]) -> ExpectedStudy:
    runs = tuple(
        msgspec.structs.replace(run, transport=ways.get(run.run_id, "")) for run in study.runs
    )
    return msgspec.structs.replace(study, runs=runs)


def _column(report: Report) -> list[str]:
    table = report.tables[0]
    place = [column.key for column in table.columns].index("transport")
    return [row[place] for row in table.rows]


def _caveats(report: Report) -> list[str]:
    return [line for line in report.summary if "transport" in line]


def _report(ways: Mapping[str, str]) -> Report:
    study, records = finished()
    each = {run.run_id: ways.get(run.run_id.rpartition("-")[0], "") for run in study.runs}
    return _built(_with(study, each), records)


def test_column() -> None:
    report = _report({"srun-1": "NVLink", "srun-2": "IB+GDR", "srun-4": "IB+GDR"})
    assert _column(report) == ["NVLink", "IB+GDR", "IB+GDR", "--", "--", "--"]
    assert _caveats(report) == []


def test_points_of_a_series_that_differ() -> None:
    (doubt,) = _caveats(_report({"srun-1": "NVLink", "srun-2": "IB+GDR", "srun-4": "sockets"}))
    assert doubt == (
        "Caveats: the transport differs: 8 GPUs under srun (IB+GDR; other runs: sockets); 16 GPUs "
        "under srun (sockets; other runs: IB+GDR)."
    )
    assert _caveats(_report({"srun-2": "IB+GDR", "srun-4": "sockets"}))
