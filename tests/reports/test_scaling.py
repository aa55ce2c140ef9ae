from __future__ import annotations

from tests.reports.finished import empty, report


def test_the_summary_answers_first_and_then_says_what_to_distrust() -> None:
    lines = report().summary
    assert lines[0] == "Study resnet: 15 of 18 runs ok."
    assert "Regime: strong" in lines[1]
    assert "as declared" in lines[1]
    assert any(line.startswith("Best speedup of launcher=srun: 2.40 [") for line in lines)
    assert any("0 of 3 ok (1 FAILED, 2 MISSING)" in line for line in lines)


def test_the_baseline_is_given_in_absolute_numbers() -> None:
    baselines = [line for line in report().summary if line.startswith("Baseline of")]
    assert len(baselines) == 2
    assert "1010 samples/s (n=3); compared by throughput" in baselines[0]


def test_constant_columns_are_said_once() -> None:
    made = report()
    keys = [column.key for column in made.tables[0].columns]
    assert "nodes" in keys
    assert "gpus_per_node" not in keys
    assert any("gpus_per_node=4, tasks_per_node=4" in line for line in made.summary)


def test_every_run_without_a_result_is_a_row_and_nothing_is_blank() -> None:
    points, runs = report().tables
    assert [row[1].text for row in runs.rows] == ["FAILED", "MISSING", "MISSING"]
    assert len(runs.records) == 18
    assert all(cell.text for table in (points, runs) for row in table.rows for cell in row)


def test_checks_name_gates_and_missing_points() -> None:
    assert [check.partition(":")[0] for check in report().checks] == [
        "gate not met",
        "missing point",
    ]
    assert "srun, 4 nodes" in report().checks[0]


def test_notes_say_how_the_intervals_were_made() -> None:
    assert "95%, Welch on logarithms" in report().notes[0]
    assert "study note" in report().notes


def test_a_study_without_runs_still_gives_a_report() -> None:
    assert empty().summary == ("Study resnet: 0 of 0 runs ok.", "No point to compare.")
