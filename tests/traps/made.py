"""A cluster and jobs on it: plans of every launcher, their argv and their scripts."""

from __future__ import annotations

from typing import Any

from hpc_train.base.decode import decode
from hpc_train.base.errors import SiteProfileError, SpecError
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import LaunchPlan
from hpc_train.scripts.render import render_script
from hpc_train.sites.profile import SiteProfile
from tests.plans.launchers.made import words

LAUNCHERS = ["srun", "torchrun", "mpirun", "ibrun", "accelerate", "deepspeed", "spawn", "single"]
# Those that srun starts: every rank, or an agent on each node.
BELOW_SRUN = ["srun", "torchrun", "accelerate", "deepspeed", "spawn"]
SITE = {
    "schema": 1,
    "name": "big",
    "description": "d",
    "scheduler": "slurm",
    "launchers": {"default": "srun", "allowed": LAUNCHERS},
}
SIZE = {"nodes": 2, "gpus_per_node": 4, "cpus_per_task": 8}


def planned(
    launcher: str = "srun",
    resources: dict[str, Any] | None = None,
    site: dict[str, Any] | None = None,
    **keys: Any,
) -> LaunchPlan:
    """Return the plan of a job; `single` has one rank, the others two nodes of four."""
    size = {"cpus_per_task": 8} if launcher == "single" else SIZE
    job = {
        "name": "j",
        "command": ["python", "t.py"],
        "launcher": launcher,
        "resources": size if resources is None else resources,
        **keys,
    }
    return make_plan(
        decode(job, JobSpec, {"": "job.yaml"}, SpecError),
        decode({**SITE, **(site or {})}, SiteProfile, {"": "big.yaml"}, SiteProfileError),
    )


def small(code: str, launcher: str = "srun", tasks: int = 2, **keys: Any) -> LaunchPlan:
    """Return the plan of a few ranks on one node that run bash."""
    size = {"tasks_per_node": tasks, "cpus_per_task": 1}
    return planned(launcher, size, command=["bash", "-c", code], **keys)


def argv(launcher: str = "srun", **keys: Any) -> str:
    """Return what starts the ranks, on one line."""
    return words(planned(launcher, **keys).launch)


def script(launcher: str = "srun", **keys: Any) -> str:
    """Return a job script."""
    return render_script(planned(launcher, **keys)).text


def directives(text: str) -> list[str]:
    """Return the #SBATCH lines of a script."""
    return [line for line in text.splitlines() if line.startswith("#SBATCH")]
