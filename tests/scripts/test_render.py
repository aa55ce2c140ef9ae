"""Scripts, whole: compared byte for byte, and read by bash and shellcheck."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hpc_train.errors import PlanError
from hpc_train.model.plan import LaunchPlan
from hpc_train.scripts.render import render_script

RESOURCES = {"nodes": 2, "gpus_per_node": 4, "cpus_per_task": 8, "time": "1h30m"}
KEYS = {
    "command": ["python", "train.py", "--note", "it's $5"],
    "env": {"NOTE": "a, b"},
    "setup": ["module load cuda"],
    "account": "abc123",
}
CASES = [("slurm-generic", launcher) for launcher in ("srun", "torchrun", "mpirun", "spawn")]
CASES += [("local", launcher) for launcher in ("torchrun", "mpirun", "spawn", "single")]
Plans = Callable[..., LaunchPlan]


def case(plan: Plans, site: str, launcher: str) -> LaunchPlan:
    here = {"tasks_per_node": 1 if launcher == "single" else 2, "cpus_per_task": 4}
    keys = {**KEYS, "resources": RESOURCES if site != "local" else here}
    return plan(site, launcher=launcher, **keys)


@pytest.mark.parametrize("launcher", ["srun", "torchrun", "mpirun", "spawn"])
def test_directives_stand_before_the_first_command(plan: Plans, launcher: str) -> None:
    lines = render_script(case(plan, "slurm-generic", launcher)).text.splitlines()
    directives = [i for i, line in enumerate(lines) if line.startswith("#SBATCH")]
    first_command = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
    assert directives == list(range(1, len(directives) + 1))
    assert directives[-1] < first_command


def test_the_digest_is_that_of_the_bytes(plan: Plans) -> None:
    first, second = render_script(plan()), render_script(plan(env={"A": "1"}))
    assert first == render_script(plan())
    assert first.digest != second.digest
    assert first.template_digest == second.template_digest


def test_a_value_that_would_become_a_directive_is_refused(plan: Plans) -> None:
    with pytest.raises(PlanError, match="cannot be written as an #SBATCH value"):
        plan("slurm-generic", constraint="a'b")
