"""A folder with every run of an MLPerf result has a score, by the rules of MLPerf."""

from __future__ import annotations

from pathlib import Path

import pytest

import hpc_train
from hpc_train.errors import ArgumentError
from hpc_train.model.log_selection import Search
from hpc_train.pipeline.report_inputs import mlperf_notes, report_inputs


def event(ms: int, key: str, rest: str) -> str:
    return f':::MLLOG {{"time_ms": {ms}, "key": "{key}", "metadata": {{}}, {rest}}}\n'


def result(folder: Path, minutes: list[float | None]) -> list[Path]:
    """Write one log for each time to train; None is a run that was aborted."""
    folder.mkdir(exist_ok=True)
    for number, time in enumerate(minutes):
        end = "aborted" if time is None else "success"
        text = event(0, "submission_benchmark", '"value": "bert"')
        text += event(0, "submission_platform", '"value": "2xDGX A100"')
        text += event(0, "run_start", '"value": null')
        text += (
            f':::MLLOG {{"time_ms": {(time or 1) * 60_000}, "key": "run_stop", "value": null, '
            f'"metadata": {{"status": "{end}"}}}}\n'
        )
        (folder / f"result_{number}.txt").write_text(text)
    return sorted(folder.glob("*.txt"))


def notes(paths: list[Path]) -> list[str]:
    return [note.partition("MLPerf score ")[2] for note in mlperf_notes(paths)]


def test_best_and_worst_are_left_out(tmp_path: Path) -> None:
    said = "3.000 minutes to train, by the rules' mean of 5 runs"
    paths = result(tmp_path / "a", [1, 2, 3, 4, 90])
    assert notes(paths) == [said]
    assert list(mlperf_notes(paths)) == [f"bert on 2xDGX A100 ({tmp_path}/a): MLPerf score {said}"]


def test_one_failed_run_is_forgiven(tmp_path: Path) -> None:
    paths = result(tmp_path, [1, 2, 3, 4, None])
    assert notes(paths)[0].startswith("3.000 minutes")
    assert notes(paths)[0].endswith("of 5 runs, 1 of them without success")
    assert notes(result(tmp_path, [1, 2, 3, None, None])) == ["none: 2 of 5 runs without success"]


def test_scaling_factor(tmp_path: Path) -> None:
    paths = result(tmp_path, [1, 2, 3])
    (tmp_path / "scaling.json").write_text('{"scaling_factor": 1.5}')
    assert notes(paths) == [
        "3.000 minutes to train, by the rules' mean of 3 runs, times the factor 1.5 of scaling.json"
    ]
    (tmp_path / "scaling.json").write_text("{}")
    assert "no MLPerf score" in next(mlperf_notes(paths))


def test_a_part_of_a_result_has_no_score(tmp_path: Path) -> None:
    assert notes(result(tmp_path, [1, 2, 3, 4, 5])[:4]) == []
    assert notes(result(tmp_path / "two", [1, 2])) == []


def test_other_files_of_that_name_have_no_score(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"result_{number}.txt").write_text("nothing\n")
    assert notes(sorted(tmp_path.glob("*.txt"))) == []


def test_a_report_notes_it(tmp_path: Path) -> None:
    result(tmp_path, [1, 2, 3])
    found = report_inputs([str(tmp_path)], Search(root=tmp_path / "none"))
    assert any("MLPerf score 2.000 minutes" in note for note in found.study.notes)


def test_no_log_is_an_error_that_says_so() -> None:
    with pytest.raises(ArgumentError, match="paths: the list is empty"):
        hpc_train.collect([])
