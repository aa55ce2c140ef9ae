"""The folder of a job's checkpoints, in the image and on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hpc_train.base.errors import PlanError
from hpc_train.base.values import Sourced
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.sites.profile import SiteProfile
from tests.plans.launchers.made import words

Jobs = Callable[..., Sourced[JobSpec]]
Sites = Callable[..., Sourced[SiteProfile]]


@pytest.fixture
def command(job: Jobs, slurm: Sites) -> Callable[..., str]:
    def make(folder: str, **containers: Any) -> str:
        env = {"HPCTRAIN_CHECKPOINTS": folder}
        return words(
            make_plan(job(env=env, container={"image": "pt"}), slurm(containers=containers)).launch
        )

    return make


@pytest.mark.parametrize("runtime", ["podman-hpc", "apptainer", "pyxis", "shifter"])
@pytest.mark.parametrize(("mounts", "own"), [((), True), (["/data"], True), (["/scratch"], False)])
def test_checkpoints_are_not_written_into_the_image(
    command: Callable[..., str], runtime: str, mounts: list[str], own: bool
) -> None:
    there = "/scratch/me/ckpt:/scratch/me/ckpt" in command(
        "/scratch/me/ckpt", runtime=runtime, mounts=mounts
    )
    assert there == (own and runtime != "shifter")


def test_a_folder_below_the_working_folder_needs_no_mount(command: Callable[..., str]) -> None:
    assert "ckpt" not in command("ckpt", runtime="podman-hpc")


def test_checkpoints_have_one_path(command: Callable[..., str]) -> None:
    """The script of the job reads their step outside."""
    with pytest.raises(PlanError, match="/ckpt/a is /scratch/me on the host") as error:
        command("/ckpt/a", runtime="podman-hpc", mounts=["/scratch/me:/ckpt"])
    assert error.value.hint == "mount it at its own path, and name that: /scratch/me"
