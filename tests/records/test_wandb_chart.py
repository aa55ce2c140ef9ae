"""Charts of Weights & Biases, as its page exports them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.errors import LogParseError
from hpc_train.records.collect import collect
from hpc_train.records.foreign_logs_by_run import foreign_runs, nothing
from hpc_train.records.parse_stats import ParseStats
from hpc_train.records.parsers.wandb_chart import charted_runs
from tests.records.parse_text import brief, parse


def column(run: str, metric: str) -> str:
    return ",".join(f'"{run} - {metric}{end}"' for end in ("", "__MIN", "__MAX"))


def chart(*columns: str, axis: str = "Step", rows: tuple[str, ...] = ()) -> bytes:
    return "\n".join((",".join((f'"{axis}"', *columns)), *rows, "")).encode()


def test_steps_of_one_run() -> None:
    text = chart(
        column("calm - sea-7", "train/step_time"),
        column("calm - sea-7", "loss"),
        column("calm - sea-7", "f1"),
        rows=(
            '"10","0.5","0.4","0.6","2.25","2","3","1","1","1"',
            '"20","","","","2","2","2","","",""',
            '"x","0.25","0.25","0.25","nan","nan","nan","","",""',
        ),
    )
    assert brief(text, "wandb_chart") == [
        ("step_time", 0.5, "per_rank", 10, None),
        ("loss", 2.25, "per_rank", 10, None),
        ("loss", 2.0, "per_rank", 20, None),
        ("step_time", 0.25, "per_rank", None, None),
    ]


def test_only_steps_count_as_steps() -> None:
    text = chart(column("a", "loss"), axis="Relative Time (Process)", rows=('"12.5","2","2","2"',))
    assert brief(text) == [("loss", 2.0, "per_rank", None, None)]


@pytest.mark.parametrize(
    "text",
    [
        chart(column("a", "f1"), rows=('"1","2","2","2"',)),
        chart(column("a", "loss"), column("b", "loss"), rows=('"1",' + ",".join('"2"' * 6),)),
        b'"Step","loss__MIN"\n"1","2"\n',
        b'"Step","a - loss"\n"1","2"\n',
        b'__MIN"\n"1","2"\n',
        b"__MIN\n",
    ],
    ids=["unknown", "several", "no run", "no bounds", "one quote", "one column"],
)
def test_other_tables_are_no_charts(text: bytes) -> None:
    assert parse(text, "wandb_chart") == []


def test_a_chart_ends_at_another_line() -> None:
    rows = ('"1","2","2","2"', "the end", '"2","2","2","2"')
    assert len(parse(chart(column("a", "loss"), rows=rows), "wandb_chart")) == 1


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
