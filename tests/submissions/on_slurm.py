"""Studies and jobs for a site with Slurm, written into the current folder."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hpc_train.jobs.override import parse_setting
from hpc_train.runs.json_files import read_json
from hpc_train.runs.run import RunFolder, Submission
from hpc_train.scripts.prepare import Prepared, Request, prepare

RESULTS = Path("results")
LONG_AGO = "2026-01-02T03:04:05+00:00"


def study(*settings: str, site: str = "slurm-generic", points: int = 2) -> Prepared:
    """Prepare a study of several points and two repetitions."""
    values = list(range(1, points + 1))
    Path("study.yaml").write_text(
        f"name: s\njob:\n  command: [{sys.executable}, -c, pass]\n  launcher: single\n"
        "  resources: {cpus_per_task: 1}\n"
        f"axes: {{env.X: {values}}}\nrepetitions: 2\nscaling: strong\n"
    )
    overrides = tuple(map(parse_setting, settings))
    return prepare(Request(path=Path("study.yaml"), site=site, overrides=overrides))


def job(*settings: str, site: str = "slurm-generic") -> Prepared:
    """Prepare a job of one process."""
    Path("job.yaml").write_text(
        f"name: j\ncommand: [{sys.executable}, -c, pass]\nlauncher: single\n"
        "resources: {cpus_per_task: 1}\n"
    )
    overrides = tuple(map(parse_setting, settings))
    return prepare(Request(path=Path("job.yaml"), site=site, overrides=overrides))


def profile(text: str) -> str:
    """Write a site profile, and return its name."""
    Path("big.yaml").write_text(
        "schema: 1\nname: big\ndescription: d\nscheduler: slurm\n"
        f"launchers: {{default: single, allowed: [single, srun, torchrun]}}\n{text}\n"
    )
    return "big"


def submission(run: RunFolder) -> Submission:
    """Read a run's submission.json."""
    return read_json(run.submission, Submission)


def ids(runs: Iterable[RunFolder]) -> list[str]:
    """Return the jobs of runs, in order of the runs' names."""
    return [submission(run).native_id for run in sorted(runs, key=lambda run: run.run_id)]


def folders(home: Path) -> list[str]:
    """Return the names of what lies in a folder, without what starts with a dot."""
    return sorted(path.name for path in home.iterdir() if not path.name.startswith("."))


def age(runs: Iterable[RunFolder], submitted: str = LONG_AGO) -> None:
    """Let it be long ago that runs were submitted."""
    for run in runs:
        content = json.loads(run.submission.read_bytes())
        run.submission.write_text(json.dumps({**content, "submitted": submitted}))


def says(run: RunFolder, **status: Any) -> None:
    """Write what a job says of itself; it started long ago, unless told otherwise."""
    run.status.write_text(json.dumps({"started": 1000.0, **status}))
