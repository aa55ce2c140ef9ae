"""Logs that arrive in pieces; names of two hosts do not clash."""

from __future__ import annotations

from pathlib import Path

from hpc_train.model.run import RunFolder
from hpc_train.submissions.hosts.fetched_logs import file_here, parts, sizes_there
from hpc_train.submissions.hosts.started_hosts import StartedHost

HOST = StartedHost(name="gpu2", address="10.0.0.12", folder="/f", boot="b")


def test_the_parts_of_an_answer_may_contain_any_bytes() -> None:
    body = b"log 12 job.out\nlog 3 x\n\nab\nlog 3 rank-1.out\n\xff\0\n"
    assert list(parts(body)) == [("job.out", b"log 3 x\n\nab\n"), ("rank-1.out", b"\xff\0\n")]


def test_a_part_that_was_cut_off_or_has_a_path_is_left_out() -> None:
    assert list(parts(b"log 5 a.out\nab")) == []
    assert list(parts(b"log 2 ../a.out\nab")) == []


def test_the_log_of_the_script_keeps_its_name_on_the_first_host_only(tmp_path: Path) -> None:
    run = RunFolder(path=tmp_path)
    run.logs.mkdir()
    for name, size in {"job.out": 5, "job-gpu2.out": 7, "rank-1.out": 9}.items():
        (run.logs / name).write_bytes(b"x" * size)
    assert file_here(run, "job.out", HOST, 0) == run.logs / "job.out"
    assert file_here(run, "job.out", HOST, 1) == run.logs / "job-gpu2.out"
    assert file_here(run, "rank-1.out", HOST, 1) == run.logs / "rank-1.out"
    assert sizes_there(run, HOST, 0)["job.out"] == 5
    assert sizes_there(run, HOST, 1) == {"job.out": 7, "rank-1.out": 9}
