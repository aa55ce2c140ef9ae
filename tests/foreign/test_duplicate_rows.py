"""One job twice in tables: two rows with the same values, however they are written."""

from pathlib import Path

import pytest

from hpc_train.base.errors import LogParseError
from hpc_train.foreign.runs_from_table import table_study
from hpc_train.foreign.table_file import read_table

HEAD = "run,nodes,gpus_per_node,global_batch_size,samples_per_second"


def tables(folder: Path, *texts: str) -> int:
    """Return the number of runs of the tables."""
    paths = [folder / f"t{number}.csv" for number, _ in enumerate(texts)]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return len(table_study([*map(read_table, paths)])[0].runs)


@pytest.mark.parametrize("again", ["500.0", "5e2"])
def test_equal_rows_of_a_table_are_repetitions_and_the_answer_says_so(
    tmp_path: Path, again: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{HEAD}\n,1,4,256,500\n,1,4,256,{again}\n,1,4,256,500\n")
    study, _ = table_study([read_table(path)])
    assert [run.repetition for run in study.runs] == [1, 2, 3]
    assert study.assumed == (f"reading equal rows as repetitions ({path}:2 and {path}:3, 1 more)")


@pytest.mark.parametrize(
    "rows",
    [
        "a,1,4,256,500\nb,1,4,256,500",
        "a,1,4,256,500.123\nb,2,4,256,500.123",
        "a,1,4,256,500.123\nb,1,4,512,500.123",
    ],
)
def test_other_rows_are_two_jobs(tmp_path: Path, rows: str) -> None:
    assert tables(tmp_path, f"{HEAD}\n{rows}\n") == 2


def test_one_job_in_two_tables_with_two_units_counts_once(tmp_path: Path) -> None:
    seconds = "nodes,gpus_per_node,global_batch_size,step_time\n1,4,256,0.52\n"
    milliseconds = "nodes,gpus,global_batch_size,step_time [ms]\n1,4,256,520\n"
    with pytest.raises(LogParseError, match=r"t1\.csv:2: the same row as .*t0\.csv:2"):
        tables(tmp_path, seconds, milliseconds)
    assert tables(tmp_path, seconds, milliseconds.replace("520", "530")) == 2


def test_two_jobs_that_failed_alike_are_two_jobs(tmp_path: Path) -> None:
    assert tables(tmp_path, "nodes,samples_per_second,state\n2,,FAILED\n2,,FAILED\n") == 2
