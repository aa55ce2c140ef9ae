"""Queues of this machine that one process starts."""

from __future__ import annotations

from pathlib import Path

from hpc_train.submissions.supervisor import new_queue


def test_queues_that_a_process_makes_in_the_same_second_have_different_locks(
    tmp_path: Path,
) -> None:
    queues = [new_queue(tmp_path) for _ in range(100)]
    assert len({queue.file("lock") for queue in queues}) == 100
