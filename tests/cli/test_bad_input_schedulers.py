"""What a user can get wrong at machines by ssh, PBS and SageMaker: one answer, before any call."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Hpctrain = Callable[..., subprocess.CompletedProcess[str]]
HEAD = """\
schema: 1
name: NAME
description: a site of a test
sources: [{what: a test, date: 2026-11-01, confidence: high}]
"""
SAGEMAKER = (
    HEAD
    + """\
scheduler: sagemaker
sagemaker:
  region: eu-west-1
  role: "arn:aws:iam::123456789012:role/lab"
  bucket: "s3://hpctrain/runs"
  image: an-image
launchers: {default: torchrun, allowed: [torchrun, single]}
partitions:
  - {name: ml.g5.12xlarge, default: true, cpus_per_node: 48, gpus_per_node: 4, max_nodes: 8}
"""
)
HOSTS = (
    HEAD
    + """\
scheduler: hosts
hosts:
  - {name: gpu1}
  - {name: gpu2}
launchers: {default: torchrun, allowed: [torchrun, spawn]}
partitions:
  - {name: all, default: true, cpus_per_node: 8, gpus_per_node: 4, max_nodes: 2}
"""
)
PBS = (
    HEAD
    + """\
scheduler: pbs
launchers: {default: torchrun, allowed: [torchrun]}
partitions:
  - {name: all, default: true, cpus_per_node: 8, max_nodes: 2}
"""
)
TEXTS = {"sm": SAGEMAKER, "boxes": HOSTS, "queue": PBS}
JOB = "command: [python, train.py]\nresources: {nodes: 2, time: 10m}\n"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, hpctrain: Hpctrain, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in TEXTS.items():
        (tmp_path / f"{name}.yaml").write_text(text.replace("NAME", name))
    (tmp_path / "train.py").write_text("print('hello')\n")
    (tmp_path / "job.yaml").write_text(JOB)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))


def refused(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("site", "setting", "parts"),
    [
        ("sm", "directives={array: 1-4}", ["--set directives: directives.array: ", "repetitions"]),
        ("sm", "launcher=srun", ["--set launcher: ", "SageMaker has no srun", "allowed: torchrun"]),
        ("sm", "launcher=mpirun", ["ssh, which the hosts of a training job do not have"]),
        ("sm", "nodes=9", ["nodes = 9, but sm ml.g5.12xlarge has at most 8 (sm.yaml:"]),
        ("sm", "partition=ml.g5.24xlarge", ["unknown partition of sm 'ml.g5.24xlarge'; did you"]),
        ("boxes", "launcher=srun", ["--set launcher: ", "there is no Slurm on a list of hosts"]),
        ("boxes", "container={image: a.sif}", ["names no runtime", "containers: {runtime: "]),
        ("boxes", "nodes=3", ["nodes = 3, but ", "has at most 2", "boxes.yaml:"]),
        ("queue", "launcher=srun", ["--set launcher: ", "srun"]),
        ("queue", "container={image: a.sif}", ["names no runtime", "containers: {runtime: "]),
    ],
)
def test_a_job_that_a_scheduler_cannot_run(
    hpctrain: Hpctrain, site: str, setting: str, parts: list[str]
) -> None:
    refused(hpctrain("submit", "job.yaml", "--site", site, "--set", setting), *parts)


def test_a_fixed_port_is_sound_where_no_other_job_has_the_hosts(hpctrain: Hpctrain) -> None:
    done = hpctrain("lint", "job.yaml", "--site", "sm")
    assert (done.returncode, "HT303" in done.stdout) == (0, False), done.stdout
