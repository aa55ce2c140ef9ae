"""Records that were collected before, given to the report again: by value, and where damaged."""

import json
from pathlib import Path
from typing import Any

import pytest

from hpc_train.base.errors import LogParseError, ReportError
from hpc_train.jobs.log_selection import Search
from hpc_train.reports.build import build_report
from hpc_train.reports.collect import collection, write_records
from hpc_train.reports.report_inputs import ReportInputs, report_inputs

ENDINGS = ["parquet", "csv", "jsonl"]


def log(world: int, seconds: float) -> str:
    said = f'@hpct {{"world_size": {world}, "global_batch_size": 64}}\n'
    return said + "".join(
        f"iter {n}: loss 2.5000, time {1000 * seconds:.2f}ms, mfu 20.00%\n" for n in range(1, 40)
    )


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "a.log").write_text(log(4, 0.4))
    (tmp_path / "b.log").write_text(log(8, 0.2))
    return tmp_path


def collected(folder: Path, ending: str) -> Path:
    path = folder / f"kept.{ending}"
    words = [str(folder / "a.log"), str(folder / "b.log")]
    write_records(collection(words, Search(root=folder / "none")).packs(), path)
    return path


def read(path: Path, **search: Any) -> ReportInputs:
    return report_inputs([str(path)], Search(root=path.parent / "none", **search))


@pytest.mark.parametrize("ending", ENDINGS)
def test_collected_records_make_the_report_of_their_logs(logs: Path, ending: str) -> None:
    words = [str(logs / "a.log"), str(logs / "b.log")]
    direct = build_report(report_inputs(words, Search(root=logs / "none")))
    kept = build_report(read(collected(logs, ending)))
    assert kept.tables[0].records == direct.tables[0].records
    assert kept.run_rows == direct.run_rows
    assert kept.tables[0].records[1]["speedup"]["value"] == pytest.approx(2)


@pytest.mark.parametrize("ending", ENDINGS)
def test_records_take_sizes_too(logs: Path, ending: str) -> None:
    points = logs / "points.yaml"
    points.write_text("a.log: {nodes: 1, gpus_per_node: 4}\nb.log: {nodes: 2, gpus_per_node: 2}\n")
    one, two = read(collected(logs, ending), points=points).study.runs
    assert (one.sizes["gpus_per_node"], one.state) == (4, "COMPLETED")
    assert two.state == "UNPARSED"
    assert "the log says world_size 8, not 4" in two.problem


RECORD = {
    "run": "a", "source": "a.log", "line": 1, "parser": "event", "metric": "step_time",
    "value": 0.5, "unit": "s", "scope": "global",
}  # fmt: skip


def lines(*changes: dict[str, Any]) -> str:
    return "".join(json.dumps({**RECORD, **change}) + "\n" for change in changes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (lines({}, {"schema": 2}), ":2: written by a newer hpctrain (schema 2, this one reads 1)"),
        (lines({}, {"colour": 1}), ":2: written by a newer hpctrain (schema with 'colour'"),
        (lines({}, {"value": "x"}), ":2: damaged"),
        (lines({}, {"scope": "node"}), ":2: damaged"),
        (lines({}, {})[:-9], ":2: damaged"),
        (lines({}) + "[]\n", ":2: damaged: no record"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "kept.jsonl"
    path.write_text(text)
    with pytest.raises(LogParseError) as caught:
        read(path)
    assert f"{path}{said}" in caught.value.message


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("0.4", "0,4"), "cells"),
        (("global", "node"), "damaged"),
        (("variant\n", "variant,colour\n"), "cells"),
    ],
)
def test_a_damaged_csv_is_named(logs: Path, change: tuple[str, str], said: str) -> None:
    path = collected(logs, "csv")
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(LogParseError, match=rf"kept\.csv:\d+: .*{said}"):
        read(path)


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kept.parquet"
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(ReportError, match=r"kept\.parquet: cannot be read as Parquet"):
        read(path)
