"""Runs as a study leaves them behind, without running any."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from hpc_train.base.decode import decode
from hpc_train.base.errors import SpecError
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.runs.json_files import to_json
from hpc_train.runs.run import (
    MANIFEST_SCHEMA,
    PROFILE,
    JobState,
    JobStatus,
    Manifest,
    Run,
    RunFolder,
    Script,
    Submission,
)
from hpc_train.runs.run_folders import create_runs, read_run
from hpc_train.sites.load import Machine, load_site

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def manifest(run_id: str, job: Mapping[str, Any] | None = None, **changed: Any) -> Manifest:
    """Return what a submission records; `job` are other keys of the job."""
    data = {"name": "j", "command": ["python", "train.py"], **(job or {})}
    spec = decode(data, JobSpec, {"": "job.yaml"}, SpecError)
    said = Manifest(
        schema=MANIFEST_SCHEMA,
        run_id=run_id,
        name="j",
        study=None,
        axes={},
        repetition=1,
        attempt=1,
        created="2026-11-01T00:00:00+00:00",
        spec=spec.value,
        plan=make_plan(spec, load_site("local", Machine(cpus=2, gpus=0))),
        script_digest="d" * 64,
        template_digest="t" * 64,
        provenance={
            "hpctrain": "0.1.0",
            "host": "login1",
            "git": {"commit": COMMIT, "dirty": True},
            "packages": {"torch": "2.13.0+cpu"},
            PROFILE: "/sites/lab.yaml",
        },
    )
    return msgspec.structs.replace(said, **changed)


def run(
    run_id: str, job: Mapping[str, Any] | None = None, state: str = "COMPLETED", **changed: Any
) -> Run:
    """Return a run whose folder nobody has."""
    return Run(
        folder=RunFolder(path=Path("/nowhere") / run_id),
        manifest=manifest(run_id, job, **changed),
        submission=Submission(
            executor="slurm", native_id="101", submitted="2026-11-01T10:00:00+00:00"
        ),
        status=JobStatus(started=1e9, ended=1e9 + 60, exit_code=0, nodes="n[1-2]", job="101"),
        state=JobState(state),
    )


def written(home: Path, run_id: str, log: str, exit_code: int = 0, **changed: Any) -> Run:
    """Write the folder of a local run that ended, with its log."""
    script = Script(text="#!/bin/bash\n", digest="d" * 64, template_digest="t" * 64)
    (folder,) = create_runs(home, [(manifest(run_id, **changed), script)])
    folder.submission.write_bytes(
        to_json(Submission(executor="local", native_id="1", submitted="2026-11-01T10:00:00+00:00"))
    )
    folder.status.write_bytes(
        to_json(JobStatus(started=1e9, ended=1e9 + 60, exit_code=exit_code, host="vm"))
    )
    (folder.logs / "rank-0.out").write_text(log)
    files = read_run(folder)
    return Run(
        folder=folder,
        manifest=files.manifest,
        submission=files.submission,
        status=files.status,
        state=JobState.FAILED if exit_code else JobState.COMPLETED,
    )
