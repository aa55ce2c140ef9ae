"""Charts of Weights & Biases, as its page exports them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.base.errors import LogParseError
from hpc_train.logs.collect import collect
from hpc_train.logs.foreign_logs_by_run import foreign_runs, nothing
from hpc_train.logs.formats.metric_tables import charted_runs
from hpc_train.logs.read_log import ParseStats


def column(run: str, metric: str) -> str:
    return ",".join(f'"{run} - {metric}{end}"' for end in ("", "__MIN", "__MAX"))


def chart(*columns: str, axis: str = "Step", rows: tuple[str, ...] = ()) -> bytes:
    return "\n".join((",".join((f'"{axis}"', *columns)), *rows, "")).encode()


@pytest.mark.parametrize("count", [2, 200])
def test_several_runs_are_refused_by_name(tmp_path: Path, count: int) -> None:
    path = tmp_path / "chart.csv"
    columns = [column(f"run-{number}", "loss") for number in range(count)]
    path.write_bytes(chart(*columns, rows=('"1",' + ",".join(['"2"'] * 3 * count),)))
    logs = foreign_runs([path])["chart.csv"]
    stats = ParseStats()
    assert list(collect("chart.csv", [path], census=stats)) == []
    with pytest.raises(LogParseError) as refused:
        raise nothing(logs, stats)
    assert "a chart of Weights & Biases with the steps of" in refused.value.message
    assert "(run-0, run-1" in refused.value.message
    assert "export a chart of each run" in refused.value.hint


def test_another_table_is_not_called_a_chart(tmp_path: Path) -> None:
    path = tmp_path / "chart.csv"
    path.write_text("a,b\n1,2\n")
    logs = foreign_runs([path])["chart.csv"]
    assert "no column of a known time, rate or loss" in nothing(logs, ParseStats()).message
    assert charted_runs('"Step","a - x","a - x__MAX","b - x"') == ("a", "b")
