"""Plans to render, made of a job as people write it; a Slurm in small to run their scripts in."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpc_train.base.decode import decode
from hpc_train.base.errors import SpecError
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import LaunchPlan
from hpc_train.scripts.render import render_script
from hpc_train.sites.load import Machine, load_site
from tests.scripts.job_starts import PROGRAM, Job, save
from tests.scripts.plain_scripts import JOB
from tests.scripts.stubs import SITE, install

# As with --kill-on-bad-exit: when a rank fails, all processes of the others get TERM. BEFORE is run
# before them.
SRUN = """\
#!/bin/bash
set -m
while [[ $1 == -* ]]; do
  [[ $1 == --ntasks=* ]] && tasks=${1#*=}
  shift
done
eval "${BEFORE:-}"
ranks=()
for ((i = 0; i < tasks; i++)); do
  SLURM_PROCID=$i SLURM_LOCALID=$i SLURM_NODEID=$i SLURM_NTASKS=$tasks SLURMD_NODENAME=node$i \\
    "$@" &
  ranks+=($!)
done
trap 'kill -s TERM -- "${ranks[@]/#/-}" 2>/dev/null' TERM
code=0 left=("${ranks[@]}")
# Not `wait -n`: bash forgets a rank that ended before it.
while [ -n "${left[*]}" ]; do
  running=()
  for rank in "${left[@]}"; do
    if kill -0 "$rank" 2>/dev/null; then running+=("$rank"); continue; fi
    wait "$rank" || { code=$?; kill -s TERM -- "${ranks[@]/#/-}" 2>/dev/null; }
  done
  left=("${running[@]}")
  [ -z "${left[*]}" ] || sleep 0.02
done
exit "$code"
"""
SCONTROL = "#!/bin/bash\necho localhost\n"
Execute = Callable[..., subprocess.CompletedProcess[str]]
# Fixtures of tests that run whole jobs.
_STARTING = {"execute", "started", "bench", "jobs", "job"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs the script of a job, which starts many programs."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and _STARTING & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.process)


@pytest.fixture(scope="session")
def plan() -> Callable[..., LaunchPlan]:
    def make(site: str = "local", **keys: Any) -> LaunchPlan:
        data = {"name": "demo", "command": ["python", "train.py"], **keys}
        job = decode(data, JobSpec, {"": "job.yaml"}, SpecError)
        return make_plan(job, load_site(site, Machine(cpus=8, gpus=0)))

    return make


@pytest.fixture
def execute(tmp_path: Path) -> Execute:
    """Run a plan's script with arguments, where `srun` and `scontrol` know this machine only."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {"srun": SRUN, "scontrol": SCONTROL}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    outer = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "HPCTRAIN_"))}

    def run(
        plan: LaunchPlan, *arguments: str | Path, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        # Any of them may be that of the run.
        folders = [path for path in tmp_path.iterdir() if path.is_dir() and path != programs]
        script = save(render_script(plan), tmp_path / "job.sbatch", *folders)
        path = f"{programs}:{os.environ['PATH']}"
        return subprocess.run(
            ["bash", str(script), *map(str, arguments)],
            cwd=tmp_path,
            env={**outer, "SLURM_JOB_NODELIST": "localhost", "PATH": path, **environment},
            capture_output=True,
            text=True,
            timeout=240,
        )

    return run


@pytest.fixture
def files(tmp_path: Path, execute: Execute) -> Path:
    """A job, a site for it, and programs that note their words."""
    assert execute is not None
    install(tmp_path / "bin")
    (tmp_path / "notes").mkdir()
    (tmp_path / "image.img").touch()
    (tmp_path / "big.yaml").write_text(SITE)
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


@pytest.fixture
def started(plan: Callable[..., LaunchPlan], tmp_path: Path) -> Callable[..., Job]:
    """Make a job whose starts bash runs, with keys of `lifecycle`."""

    def make(**lifecycle: Any) -> Job:
        command = ["bash", "-c", PROGRAM]
        made = plan("slurm-generic", command=command, launcher="single", lifecycle=lifecycle)
        return Job(tmp_path, render_script(made))

    return make
