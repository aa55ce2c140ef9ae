"""Scripts, whole: compared byte for byte, and read by bash and shellcheck."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from hpc_train.errors import PlanError
from hpc_train.model.plan import LaunchPlan
from hpc_train.scripts.render import render_script

GOLDEN = Path(__file__).parent.parent / "golden"
RESOURCES = {"nodes": 2, "gpus_per_node": 4, "cpus_per_task": 8, "time": "1h30m"}
KEYS = {
    "command": ["python", "train.py", "--note", "it's $5"],
    "env": {"NOTE": "a, b"},
    "setup": ["module load cuda"],
    "account": "abc123",
}
CASES = [("slurm-generic", launcher) for launcher in ("srun", "torchrun", "mpirun", "spawn")]
CASES += [("local", launcher) for launcher in ("torchrun", "mpirun", "spawn", "single")]
SET = "set -e  # Setup: the first line that fails ends the job."
Plans = Callable[..., LaunchPlan]


def case(plan: Plans, site: str, launcher: str) -> LaunchPlan:
    here = {"tasks_per_node": 1 if launcher == "single" else 2, "cpus_per_task": 4}
    keys = {**KEYS, "resources": RESOURCES if site != "local" else here}
    return plan(site, launcher=launcher, **keys)


@pytest.mark.parametrize(("site", "launcher"), CASES)
def test_the_script_is_the_one_on_record(plan: Plans, site: str, launcher: str) -> None:
    """With HPCTRAIN_WRITE_GOLDEN=1 the records are written anew; read the diff."""
    script = render_script(case(plan, site, launcher))
    path = GOLDEN / f"{launcher}.{site}.sbatch"
    if os.environ.get("HPCTRAIN_WRITE_GOLDEN") == "1":
        path.write_text(script.text)
    assert path.exists(), f"no record: {path}"
    assert script.text == path.read_text()


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


def test_modules_are_loaded_before_the_setup_lines(plan: Callable[..., LaunchPlan]) -> None:
    made = plan("slurm-generic", modules=["cuda/12.4", "x$(y)"], setup=["source venv"])
    lines = render_script(made).text.splitlines()
    at = lines.index(SET)
    wanted = ["module load cuda/12.4 'x$(y)'", "source venv", "set +e"]
    assert lines[at + 1 : at + 4] == wanted


def test_a_site_starts_from_no_modules_and_in_its_own_folders(
    plan: Callable[..., LaunchPlan],
) -> None:
    made = msgspec.structs.replace(
        plan("slurm-generic", modules=["x"]), modules_purge=True, modules_use=("/appl/$(id) b",)
    )
    lines = render_script(made).text.splitlines()
    at = lines.index(SET)
    wanted = ["module purge", "module use '/appl/$(id) b'", "module load x", "set +e"]
    assert lines[at + 1 : at + 5] == wanted
    only = msgspec.structs.replace(plan("slurm-generic"), modules_purge=True)
    assert f"{SET}\nmodule purge\nset +e" in render_script(only).text
