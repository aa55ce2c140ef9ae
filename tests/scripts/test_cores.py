"""Where the profile does not state the cores of a node, the ranks divide what Slurm gives."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from hpc_train.model.plan import LaunchPlan
from hpc_train.scripts.render import render_script

NODES = {"nodes": 2, "gpus_per_node": 8, "time": "1h"}


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(("cores", "each"), [("96", "12"), ("100", "12"), ("8", "1"), ("4", "1")])
def test_the_ranks_divide_the_cores(
    plan: Callable[..., LaunchPlan], cores: str, each: str, plain: bool
) -> None:
    text = render_script(plan("coreweave", partition="gpu", resources=NODES), plain=plain).text
    lines = [line for line in text.splitlines() if line.startswith(("cpus_", "export OMP_"))]
    code = "\n".join([*lines, 'echo "$OMP_NUM_THREADS"'])
    env = {"SLURM_CPUS_ON_NODE": cores}
    done = subprocess.run(["bash", "-uc", code], env=env, capture_output=True, text=True)
    assert done.stdout == f"{each}\n", done.stderr
