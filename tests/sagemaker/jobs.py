"""A profile of SageMaker, and a job for it."""

from pathlib import Path

from hpc_train.jobs.override import parse_setting
from hpc_train.scripts.prepare import PreparedPoint, Request, prepare
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import SourcedSite

ROLE = "arn:aws:iam::123456789012:role/training"
PROFILE = f"""\
schema: 1
name: aws
description: training jobs
scheduler: sagemaker
sagemaker:
  region: eu-west-1
  role: {ROLE}
  bucket: s3://my-bucket/hpctrain
launchers: {{default: torchrun, allowed: [torchrun, single, spawn]}}
partitions:
  - {{name: ml.g5.12xlarge, default: true, gpus_per_node: 4, cpus_per_node: 48, max_nodes: 4}}
"""
JOB = """\
name: resnet.50_a
command: [python, train.py]
container: {image: registry/pytorch:2.8}
resources: {nodes: 2, time: 1h}
"""


def profile(folder: Path, *change: tuple[str, str]) -> Path:
    """Write the profile with changes."""
    text = PROFILE
    for old, new in change:
        assert old in text
        text = text.replace(old, new)
    path = folder / "aws.yaml"
    path.write_text(text)
    return path


def site(folder: Path, *change: tuple[str, str]) -> SourcedSite:
    """Return the profile with changes."""
    return load_site(str(profile(folder, *change)))


def job(folder: Path, *settings: str, change: tuple[tuple[str, str], ...] = ()) -> PreparedPoint:
    """Return the job, planned and rendered; `change` is that of the profile."""
    (folder / "job.yaml").write_text(JOB)
    (folder / "train.py").touch()
    path = profile(folder, *change)
    overrides = tuple(map(parse_setting, settings))
    request = Request(path=folder / "job.yaml", site=str(path), overrides=overrides)
    return prepare(request).points[0]
