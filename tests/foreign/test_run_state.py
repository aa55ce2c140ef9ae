"""States of runs in the words of Slurm and of other programs."""

from pathlib import Path

import pytest

from hpc_train.base.errors import LogParseError
from hpc_train.foreign.runs_from_table import table_study
from hpc_train.foreign.table_file import read_table
from hpc_train.runs.expected_runs import ExpectedStudy


def study(folder: Path, word: str) -> ExpectedStudy:
    """Return the study of a table with one run in this state."""
    path = folder / "table.csv"
    path.write_text(f"nodes,gpus_per_node,samples_per_second,state\n1,2,10,{word}\n")
    return table_study([read_table(path)])[0]


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("Succeeded", "COMPLETED"), ("FINISHED", "COMPLETED"), ("complete", "COMPLETED"),
        ("0", "COMPLETED"), ("0:0", "COMPLETED"), ("crashed", "FAILED"), ("Error", "FAILED"),
        ("killed", "CANCELLED"), ("oom", "OUT_OF_MEMORY"), ("Running", "RUNNING"),
        ("queued", "PENDING"),
    ],
)  # fmt: skip
def test_states_in_the_words_of_other_programs(tmp_path: Path, word: str, state: str) -> None:
    assert [run.state for run in study(tmp_path, word).runs] == [state]


@pytest.mark.parametrize("word", ["Suceeded", "1"])
def test_an_unknown_state_is_refused_with_its_cell(tmp_path: Path, word: str) -> None:
    with pytest.raises(LogParseError, match=r"table\.csv:2: state: .* is not a state") as caught:
        study(tmp_path, word)
    assert ("did you mean 'SUCCEEDED'" in caught.value.message) == (word != "1")


@pytest.mark.parametrize("heading", ["status", "Status", "job_state", "Job status", "Result"])
def test_a_failed_run_is_not_ok_under_another_heading(tmp_path: Path, heading: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"{heading},nodes,step_time\nFINISHED,1,0.5\nFAILED,2,0.27\n")
    runs = table_study([read_table(path)])[0].runs
    assert [(run.state, run.axes) for run in runs] == [("COMPLETED", {}), ("FAILED", {})]


@pytest.mark.parametrize(
    "heading", ["exit_code", "ExitCode", "exit status", "returncode", "exitStatus", "rc", "exit"]
)
@pytest.mark.parametrize(
    ("code", "state", "problem"),
    [
        ("0", "COMPLETED", ""), ("0:0", "COMPLETED", ""), ("0.0", "COMPLETED", ""),
        ("", "COMPLETED", ""), ("1", "FAILED", "exit code 1"), ("-9", "FAILED", "exit code -9"),
        ("0:9", "FAILED", "exit code 0:9"), ("abc", "FAILED", "exit code abc"),
        ("137.0", "FAILED", "exit code 137.0"),
    ],
)  # fmt: skip
def test_an_exit_code_is_a_state(
    tmp_path: Path, heading: str, code: str, state: str, problem: str
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"nodes,step_time,{heading}\n1,0.5,{code}\n")
    (run,) = table_study([read_table(path)])[0].runs
    assert (run.state, run.problem, run.axes) == (state, problem, {})


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ("ok,1", "state 'ok' and exit_code '1' contradict each other"),
        ("ok,abc", "state 'ok' and exit_code 'abc' contradict each other"),
    ],
)
def test_an_impossible_exit_code_is_refused(tmp_path: Path, cells: str, message: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"nodes,step_time,state,exit_code\n1,0.5,{cells}\n")
    with pytest.raises(LogParseError, match=rf"table\.csv:2: {message}"):
        table_study([read_table(path)])


def names(folder: Path, rows: str) -> list[str]:
    """Return the names of the runs of a table with a column `run`."""
    (folder / "t.csv").write_text(f"run,repetition,nodes,samples_per_second\n{rows}")
    study, _ = table_study([read_table(folder / "t.csv")])
    assert not [note for note in study.notes if "not used" in note]
    return [run.run_id for run in study.runs]


def test_rows_of_one_name_are_told_apart_by_their_repetition(tmp_path: Path) -> None:
    """The message on two rows of one name, and that on equal rows, advise this column."""
    rows = "a,1,1,500.123\na,2,1,500.123\nb,1,2,900\n,1,2,910\n"
    assert names(tmp_path, rows) == ["a-r1", "a-r2", "b", "row 4"]
