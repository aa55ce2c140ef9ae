"""Nodes of a real Slurm that are built differently: each stores its topology, a report says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.user import User
from tests.pipeline.waiting import wait_for
from tests.probe.machines import fixture

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

# The GPUs of lab2 are those of another machine.
NVIDIA_SMI = """\
#!/bin/bash
shape=dgx_a100
[ "$(uname -n)" != lab2 ] || shape=dgx_h100
case $1 in
topo) cat {folder}/$shape.topology ;;
*) cat {folder}/$shape.gpus ;;
esac
"""
EVENT = '@hpct {"samples_per_second": 10, "global_batch_size": 8, "steps": 500}'


def test_a_report_names_the_node_that_differs(user: User) -> None:
    for shape in ("dgx_a100", "dgx_h100"):
        for kind in ("topology", "gpus"):
            (user.folder / f"{shape}.{kind}").write_text(fixture(f"{shape}.{kind}"))
    tool = user.folder / "nvidia-smi"
    tool.write_text(NVIDIA_SMI.format(folder=user.folder))
    tool.chmod(0o755)
    job = {
        "command": ["echo", EVENT],
        "launcher": "srun",
        "setup": [f"export PATH={user.folder}:$PATH"],
        "directives": {"nodelist": "lab[1-3]"},
        "resources": {"nodes": 3, "tasks_per_node": 2, "cpus_per_task": 1, "gpus_per_node": 0,
                      "time": "5m"},
    }  # fmt: skip
    user.write("job.yaml", {"name": "mixed", **job})
    done = user.submit("job.yaml", "--wait")
    assert done.returncode == 0, done.stderr
    (run,) = (user.folder / "results" / "mixed").glob("*/run.json")
    wait_for(lambda: len(files(run.parent)) == 3)
    assert files(run.parent) == ["lab1.txt", "lab2.txt", "lab3.txt"]
    said = " ".join(user.hpctrain("report", "mixed").stdout.split())
    expected = "links between GPUs (8 GPUs): 28 x NV12 on 2 nodes, 28 x NV18 on lab2 ("
    assert expected in said


def files(run: Path) -> list[str]:
    return sorted(path.name for path in (run / "topology").glob("*.txt"))
