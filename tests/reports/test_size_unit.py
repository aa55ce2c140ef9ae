"""Summary, table, axes and laws state sizes in one unit."""

import re
from pathlib import Path

import pytest

from hpc_train.jobs.log_selection import Search
from hpc_train.reports.build import build_report
from hpc_train.reports.report import ReportOptions
from hpc_train.reports.report_inputs import report_inputs

TABLES = {
    ("gpus", "GPU"): "nodes,gpus_per_node",
    ("ranks", "rank"): "nodes,tasks_per_node",
}


@pytest.mark.parametrize("unit", TABLES)
def test_one_unit_everywhere(tmp_path: Path, unit: tuple[str, str]) -> None:
    key, name = unit
    sizes = [1, 2, 4, 8, 16, 32]
    rows = [f"{n},4,1024,{256 * n / (1 + 0.02 * n + 0.001 * n * n)}" for n in sizes]
    path = tmp_path / "runs.csv"
    head = f"{TABLES[unit]},global_batch_size,samples_per_second"
    path.write_text("\n".join([head, *rows]) + "\n")
    inputs = report_inputs((str(path),), Search(root=tmp_path))
    made = build_report(inputs, ReportOptions(figures=True, images=()))
    tables = {table.key: table for table in made.tables}
    points, laws = tables["rows"], tables["laws"]
    assert re.match(rf"128 {name}s .* times 4 {name}s", made.summary[0])
    at = [column.key for column in points.columns].index(key)
    assert [row[at] for row in points.rows] == [f"{4 * n}" for n in sizes]
    assert [column.heading for column in laws.columns[1:3]] == ["points", f"largest\n{name}s"]
    assert {row[2] for row in laws.rows} - {"--"} == {"128"}
    peak = next(row[-1] for row in laws.rows if row[0] == "USL")
    assert 4 * 20 < float(peak.split()[0]) < 4 * 45
    for figure in made.figures:
        assert figure.data is not None
        assert {4, 128} <= {row[key] for row in figure.data.records}, figure.name
