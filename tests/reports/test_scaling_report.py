from collections.abc import Sequence

from hpc_train.logs.record import Record
from hpc_train.reports.report import Report
from hpc_train.reports.scaling_report import scaling_report
from hpc_train.runs.expected_runs import ExpectedRun
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from tests.reports.finished import report
from tests.scaling.studies import expected, foreign, rate, record, study


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
    shown = report()
    assert shown.title == (
        "resnet: strong scaling, batch 512, 2 launchers, 3 sizes, n=3, 15 of 18 runs ok"
    )
    srun, torchrun = shown.answer
    assert srun.startswith("srun: 16 GPUs 2424 samples/s, 2.40 [")
    assert srun.endswith("] times 4 GPUs, efficiency 60 %.")
    assert torchrun.startswith("torchrun: no result at 16 GPUs (1 FAILED, 2 MISSING); 8 GPUs ")
    assert shown.summary[2].startswith("Measured: strong scaling: ")
    assert "as declared" in shown.summary[2]
    assert shown.summary[-3:] == (
        "Caveats: below the gate (efficiency 0.600 < 0.75): 16 GPUs under srun.",
        "Caveats: some runs are not ok (0 of 3: 1 FAILED, 2 MISSING): 16 GPUs under torchrun.",
        "Not known: order of runs, node names.",
    )


def test_weak_scaling_does_more_work_in_the_same_time() -> None:
    answer = repeated({1: [10.0], 2: [18.0]}, {1: 8, 2: 16}).summary[0]
    said = "2 GPUs 18.00 samples/s, 1.80 times the work of 1 GPU in the same time, efficiency 90 %."
    assert answer == said


def test_one_size_is_no_scaling() -> None:
    shown = repeated({2: [10.0, 11.0, 12.0]})
    assert shown.title == "study: one size (2 nodes, 2 GPUs), n=3, 3 of 3 runs ok"
    assert shown.answer == (
        "One size only (2 nodes, 2 GPUs): no speedup; a study measures several sizes.",
        "2 GPUs 10.94 samples/s.",
    )
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
    assert "3 of 3 logs with a result" in shown.title
    assert any("do not contain the state of their job" in note for note in shown.notes)
    assert not any("do not say" in note for note in report().notes)


def test_every_run_without_a_result_is_a_row_and_nothing_is_blank() -> None:
    points, compared, runs, *_ = report().tables
    assert [row[1] for row in runs.rows] == ["FAILED", "MISSING", "MISSING"]
    assert len(runs.records) == 18
    assert all(cell for table in (points, compared, runs) for row in table.rows for cell in row)
