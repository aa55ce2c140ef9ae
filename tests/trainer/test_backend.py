"""The reference workload joins with the backend that the job's plan says."""

import pytest

from tests.trainer.forked_trainer import train
from tests.trainer.launching import TINY, events, finish, meeting_point, start, trainer

pytest.importorskip("torch")
COMMAND = (*TINY, "--global-batch-size", "8", "--device", "cpu", "--no-accuracy")


def joined(*options: str, planned: str) -> tuple[int, str, str]:
    (done,) = train(*COMMAND, *options, ranks=1, HPCTRAIN_BACKEND=planned)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("planned", ["nccl", ""])
def test_a_rank_on_the_cpu_takes_gloo(planned: str) -> None:
    code, out, err = joined(planned=planned)
    assert (code, err) == (0, "")
    assert [event["backend"] for event in events(out, "start")] == ["gloo"]


def test_the_plan_is_followed_and_the_option_wins() -> None:
    code, _, err = joined(planned="mpi")
    assert code == 2
    assert "backend mpi: this torch was built without it" in err
    code, out, _ = joined("--backend", "gloo", planned="mpi")
    assert code == 0
    assert [event["backend"] for event in events(out, "start")] == ["gloo"]


def test_nccl_without_a_gpu_is_refused_before_a_rank_starts() -> None:
    words = (*COMMAND, "--backend", "nccl")
    code, out, err = finish(start(trainer(*words), **meeting_point(), LOCAL_WORLD_SIZE=2))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--backend nccl needs a CUDA device; use gloo on the CPU" in err


def test_a_rank_that_failed_does_not_wait_for_its_group() -> None:
    """destroy_process_group waits for threads of gloo, now and then without end."""
    program = """
from torch import distributed
from hpc_train.trainer.process_group import joined
for failure in (None, KeyError):
    try:
        with joined("gloo", "cpu"):
            if failure:
                raise failure
    except KeyError:
        pass
    print(distributed.is_initialized(), flush=True)
import os
os._exit(0)
"""
    words = {**meeting_point(), "RANK": 0, "WORLD_SIZE": 1, "LOCAL_RANK": 0}
    assert finish(start(("-c", program), **words)) == (0, "False\nTrue\n", "")
