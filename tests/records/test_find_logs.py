"""Which log files one job wrote."""

from __future__ import annotations

from pathlib import Path

from hpc_train.records.find_logs import jobs_of


def jobs(*names: str) -> dict[str, list[str]]:
    found = jobs_of([Path(name) for name in names])
    return {key.as_posix(): [file.as_posix() for file in files] for key, files in found.items()}


def test_each_file_is_a_job() -> None:
    assert jobs("a/1.log", "a/2.log", "rank-0.out") == {
        "a/1.log": ["a/1.log"],
        "a/2.log": ["a/2.log"],
        "rank-0.out": ["rank-0.out"],
    }


def test_a_folder_with_files_of_ranks_is_one_job() -> None:
    files = ["run/rank-0.out", "run/rank-1.out", "run/slurm-7.out"]
    assert jobs(*files, "run2/rank-0.out", "run2/rank-1.out") == {
        "run": files,
        "run2": ["run2/rank-0.out", "run2/rank-1.out"],
    }


def test_the_log_folder_of_torchrun_is_one_job() -> None:
    one = ["x/attempt_0/0/stderr.log", "x/attempt_0/1/stderr.log", "x/attempt_1/0/stdout.log"]
    assert jobs(*one, "y/attempt_0/0/stderr.log") == {
        "x": one,
        "y": ["y/attempt_0/0/stderr.log"],
    }


def test_output_and_errors_are_one_job() -> None:
    assert jobs("a.err", "a.out", "b.err", "c.e81", "c.o81", "stderr", "stdout") == {
        "a.out": ["a.err", "a.out"],
        "b.err": ["b.err"],
        "c.o81": ["c.e81", "c.o81"],
        "stdout": ["stderr", "stdout"],
    }
