"""A vendor's script of settings, and images whose own values would win over its."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from hpc_train.model.plan import LaunchPlan
from tests.scripts.stubs import SITE, calls, install

Plans = Callable[..., LaunchPlan]
Execute = Callable[..., subprocess.CompletedProcess[str]]


def test_what_the_vendors_script_exports_is_named_to_pyxis(
    plan: Plans, execute: Execute, tmp_path: Path
) -> None:
    install(tmp_path / "bin")
    (tmp_path / "set_nccl_env.sh").write_text("export NCCL_NET=gIB NCCL_TUNER=x\nNCCL_HIDDEN=1\n")
    network = f"network: {{fabric: gcp-gib, script: {tmp_path}/set_nccl_env.sh}}\n"
    (tmp_path / "big.yaml").write_text(f"{SITE}containers: {{runtime: pyxis}}\n{network}")
    size = {"nodes": 2, "gpus_per_node": 1, "cpus_per_task": 1}
    box = {"image": str(tmp_path / "a.sqsh")}
    job = plan(
        str(tmp_path / "big.yaml"), launcher="srun", container=box, command=["true"], resources=size
    )
    (tmp_path / "notes").mkdir()
    told = execute(job, tmp_path, NOTES=str(tmp_path / "notes"))
    (names,) = (
        word.partition("=")[2].split(",")
        for word in next(calls(tmp_path / "notes", "srun"))
        if word.startswith("--container-env=")
    )
    assert {"NCCL_NET", "NCCL_TUNER"} <= set(names), told
    assert "NCCL_HIDDEN" not in names
