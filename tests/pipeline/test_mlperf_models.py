"""Logs of two MLPerf benchmarks: other models, not other sizes of one."""

from __future__ import annotations

import json
from pathlib import Path

from hpc_train.model.log_selection import Search
from hpc_train.pipeline.report import build_report
from hpc_train.pipeline.report_inputs import report_inputs
from hpc_train.pipeline.write_report import render_report


def log(path: Path, benchmark: str, ranks: int) -> str:
    events = (
        ("POINT_IN_TIME", "submission_benchmark", f'"{benchmark}"', 0),
        ("POINT_IN_TIME", "number_of_ranks", str(ranks), 0),
        ("POINT_IN_TIME", "global_batch_size", "64", 0),
        ("INTERVAL_START", "run_start", "null", 1000),
        ("INTERVAL_END", "run_stop", "null", 1000 + 80_000 // ranks),
    )
    path.write_text(
        "".join(
            f':::MLLOG {{"namespace": "", "time_ms": {ms}, "event_type": "{kind}", "key": "{key}", '
            f'"value": {value}, "metadata": {{"status": "success"}}}}\n'
            for kind, key, value, ms in events
        )
    )
    return str(path)


def test_two_benchmarks_are_two_series(tmp_path: Path) -> None:
    words = [
        log(tmp_path / "a.log", "bert", 8),
        log(tmp_path / "b.log", "bert", 16),
        log(tmp_path / "c.log", "resnet", 32),
    ]
    built = build_report(report_inputs(words, Search(root=tmp_path / "none")))
    rows = json.loads(render_report(built, "json"))["rows"]
    assert [(row["series"], row["ranks"]) for row in rows] == [
        ("model=bert", 8),
        ("model=bert", 16),
        ("model=resnet", 32),
    ]
    assert [bool(row["time_to_train_speedup"]) for row in rows] == [True, True, False]
