"""Queues of this machine that one process starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpc_train.errors import SubmitError
from hpc_train.submissions.local_queue import FOLDER, take
from hpc_train.submissions.supervisor import new_queue, start_queue, submission_of


def test_queues_that_a_process_makes_in_the_same_second_have_different_locks(
    tmp_path: Path,
) -> None:
    queues = [new_queue(tmp_path) for _ in range(100)]
    assert len({queue.file("lock") for queue in queues}) == 100


def test_a_queue_with_a_lock_that_is_held_is_not_started(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    queue = new_queue(tmp_path)
    lock = take(queue.file("lock"), wait=False)
    with pytest.raises(SubmitError, match="another process holds it"):
        start_queue(queue, (), b"[]", "no_module", submission_of(queue, "local"))
    assert not queue.file("json").exists()
    os.close(lock or 0)
