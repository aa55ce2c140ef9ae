from __future__ import annotations

from collections.abc import Sequence

from hpc_train.model.expected_study import ExpectedRun
from hpc_train.model.record import Record
from hpc_train.model.report import Report
from hpc_train.reports.scaling_report import scaling_report
from hpc_train.tables.runs import run_frame
from hpc_train.tables.speedup import speedup_frame
from tests.reports.finished import report
from tests.tables.studies import expected, foreign, rate, record, study


def made(runs: Sequence[ExpectedRun], records: Sequence[Record], **fields: object) -> Report:
    asked = study(runs, **fields)  # type: ignore[arg-type]
    frame = run_frame(asked, records)
    return scaling_report(asked, frame, speedup_frame(frame, asked))


def repeated(rates: dict[int, list[float]], batch: dict[int, float] | None = None) -> Report:
    named = {(n, i): x for n, xs in rates.items() for i, x in enumerate(xs)}
    runs = [expected(f"n{n}-{i}", nodes=n) for n, i in named]
    batches = batch or {}
    return made(
        runs, [r for (n, i), x in named.items() for r in rate(f"n{n}-{i}", x, batches.get(n))]
    )


def test_the_summary_answers_first_and_then_says_what_to_distrust() -> None:
    lines = report().summary
    assert lines[0].startswith("Fastest at 4, 8 and 16 GPUs: srun, 1.08 [")
    relative = "relative to its own smallest size"
    assert lines[1].startswith(f"Under srun, {relative}: 16 GPUs train 2.40 [")
    assert "] times as fast as 4 GPUs (efficiency 60 %); efficiency is" in lines[1]
    assert lines[2].startswith(f"Under torchrun, {relative}: 8 GPUs train 1.80 [")
    assert lines[3].startswith("Fastest point: 16 GPUs under srun, 2424 samples/s; a million ")
    assert lines[4].startswith("Measured: 15 of 18 runs ok; strong scaling: ")
    assert "as declared" in lines[4]
    assert lines[-2:] == (
        "Caveats: below the gate (efficiency 0.600 < 0.75): 16 GPUs under srun.",
        "Caveats: some runs are not ok (0 of 3: 1 FAILED, 2 MISSING): 16 GPUs under torchrun.",
    )


def test_weak_scaling_does_more_work_in_the_same_time() -> None:
    answer = repeated({1: [10.0], 2: [18.0]}, {1: 8, 2: 16}).summary[0]
    assert answer.startswith("2 GPUs do 1.80 times the work of 1 GPU in the same time")


def test_one_size_is_no_scaling() -> None:
    shown = repeated({2: [10.0, 11.0, 12.0]})
    assert shown.title == "study: one size (2 nodes, 2 GPUs)"
    assert shown.summary[0] == (
        "One size only (2 nodes, 2 GPUs): no speedup; a study measures several sizes."
    )
    assert any(line.startswith("Result: 2 GPUs, 10.94 samples/s (n=3)") for line in shown.summary)
    assert "speedup" not in [column.key for column in shown.tables[0].columns]
    assert not any("batch" in line for line in shown.summary)


def test_foreign_logs_are_told_apart_by_their_ranks_and_their_state_is_not_known() -> None:
    logs = [foreign("a.log"), foreign("b.log", 2), foreign("c.log", 3)]
    times = {"a.log": (8, 1), "b.log": (4, 2), "c.log": (5, 2)}
    records = [
        record(name, "epoch_time", time, scope="per_rank", step=1, rank=rank, parser="book")
        for name, (time, ranks) in times.items()
        for rank in range(ranks)
    ]
    records += [record(name, "world_size", ranks) for name, (_, ranks) in times.items()]
    shown = made(logs, records)
    rows = [(row["ranks"], row["n_ok"]) for row in shown.tables[0].records]
    assert rows == [(1, 1), (2, 2)]
    assert any("3 of 3 logs with a result" in line for line in shown.summary)
    assert any("do not contain the state of their job" in note for note in shown.notes)
    assert not any("do not say" in note for note in report().notes)


def test_every_run_without_a_result_is_a_row_and_nothing_is_blank() -> None:
    points, compared, runs, *_ = report().tables
    assert [row[1].text for row in runs.rows] == ["FAILED", "MISSING", "MISSING"]
    assert len(runs.records) == 18
    assert all(
        cell.text for table in (points, compared, runs) for row in table.rows for cell in row
    )


def test_checks_name_gates_and_missing_points() -> None:
    assert [check.partition(":")[0] for check in report().checks] == [
        "gate not met",
        "missing point",
    ]
    assert "16 GPUs under srun" in report().checks[0]
