from pathlib import Path

import pytest

from hpc_train.base.errors import HpcTrainError
from hpc_train.jobs.override import Override
from hpc_train.jobs.read_job import build_job
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import LaunchPlan
from hpc_train.sites.load import Machine, load_site

TRAIN = ["python", "-m", "hpc_train.trainer.train", "--global-batch-size", "8"]


def plan(command: list[str], ranks: int = 2, **keys: object) -> LaunchPlan:
    data = {"name": "j", "command": command, "resources": {"tasks_per_node": ranks}}
    given = [Override(key=key, value=value, origin="axes") for key, value in keys.items()]
    job = build_job(data, {}, given, Path("job.yaml"))
    return make_plan(job, load_site("local", Machine(cpus=8, gpus=0)))


def test_a_job_without_the_keys_keeps_its_command() -> None:
    assert plan(["python", "mine.py"]).settings["command"].value == ["python", "mine.py"]


@pytest.mark.parametrize(
    ("command", "ranks", "keys", "words"),
    [
        (["python", "mine.py"], 2, {"strategy": "ddp"}, "does not run hpc_train.trainer.train"),
        ([*TRAIN, "--model", "cnn"], 2, {"model": "cnn"}, "the command has --model as well"),
        (TRAIN, 1, {"strategy": "pipeline", "model": "gpt-tiny"}, "use 2 or more, or single"),
        (TRAIN, 2, {"strategy": "tensor"}, "cnn has convolutions"),
        (TRAIN, 1, {"strategy": "dp"}, "no effect on a CPU; use ddp"),
        (TRAIN, 2, {"accumulate": 3}, "cannot divide 4 samples into 3 equal micro-batches"),
        ([*TRAIN[:3], "--batch-size", "5"], 2, {"accumulate": 2}, "use 4 or 6 samples"),
        (TRAIN, 2, {"strategy": "fdsp"}, "did you mean 'fsdp'?"),
        (TRAIN, 2, {"schedule": "Gpipe"}, "did you mean 'GPipe'?"),
        (TRAIN, 2, {"checkpointing": "ful"}, "did you mean 'full'?"),
        (TRAIN, 2, {"clip_norm": 0}, "trainer.clip_norm: must be a number above 0 and at most"),
        (TRAIN, 2, {"clip_norm": float("inf")}, "trainer.clip_norm: must be a number above 0"),
        (TRAIN, 2, {"mesh": "2x2"}, "trainer.mesh: '2x2' is not valid: "),
        (TRAIN, 2, {"strategy": "hsdp", "mesh": "2,2"}, "needs 4 ranks for a mesh of 2 x 2, not 2"),
        ([*TRAIN, "--data", "digits"], 2, {"strategy": "hsdp", "mesh": "2,2"}, "needs 4 ranks"),
        (TRAIN, 2, {"strategy": "fsdp", "compile": "block"}, "cnn has none"),
        ([*TRAIN, "--steps", "6"], 2, {"profile_steps": 5}, "the training has 6; at most 4"),
        (TRAIN, 2, {"strategy": "naive", "precision": "fp16"}, "zero in fp16; use bf16"),
    ],
)
def test_what_cannot_run_is_refused_before_it_is_submitted(
    command: list[str], ranks: int, keys: dict[str, object], words: str
) -> None:
    with pytest.raises(HpcTrainError) as error:
        plan(command, ranks, **keys)
    assert words in str(error.value)
