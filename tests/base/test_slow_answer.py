"""What a command waits for is said after a while, once; a quick answer is not commented on."""

import pytest

from hpc_train.base import processes
from hpc_train.base.processes import notice_if_slow
from tests.submissions.waiting import wait_for


def test_a_slow_answer_is_said_to_be_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(processes, "NOTICE_S", 0.0)
    with notice_if_slow("Slurm"):
        wait_for(lambda: bool(caplog.messages))
    with notice_if_slow("qsub", "; up to 60 s"):
        wait_for(lambda: len(caplog.messages) == 2)
    assert caplog.messages == [
        "Slurm has not answered for 0 s; still waiting",
        "qsub has not answered for 0 s; up to 60 s",
    ]
