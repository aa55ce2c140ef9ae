"""Each node stores its topology in the run folder, and nothing of it can fail the job."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.model.plan import LaunchPlan
from hpc_train.probe.hardware import read_hardware
from tests.pipeline.waiting import wait_for
from tests.probe.machines import fixture
from tests.scripts.test_in_the_job import start, status

Plans = Callable[..., LaunchPlan]
NODE = {"tasks_per_node": 2, "cpus_per_task": 1}
NVIDIA_SMI = """\
#!/bin/bash
case $1 in
topo) cat {folder}/topology.txt ;;
*) cat {folder}/gpus.txt ;;
esac
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Return a folder with an nvidia-smi that prints what that of a DGX H100 did."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("topology", "gpus"):
        (tmp_path / f"{name}.txt").write_text(fixture(f"dgx_h100.{name}"))
    tool = folder / "nvidia-smi"
    tool.write_text(NVIDIA_SMI.format(folder=tmp_path))
    tool.chmod(0o755)
    return folder


def stored(folder: Path) -> list[Path]:
    return sorted((folder / "topology").glob("*.txt"))


def test_one_file_with_what_the_tools_of_the_node_say(
    plan: Plans, programs: Path, tmp_path: Path
) -> None:
    # The local rank 0 of each node reads it.
    launched = plan(command=["true"], launcher="spawn", resources=NODE)
    path = f"{programs}:{os.environ['PATH']}"
    process = start(launched, tmp_path, PATH=path)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, output
    wait_for(lambda: bool(stored(tmp_path)))
    (file,) = stored(tmp_path)
    assert file.stem == os.uname().nodename
    found = read_hardware(file.read_text(), ()).topology
    assert len(found.gpus) == 8
    assert {link.label for link in found.links} == {"NV18"}
    assert found.numa


def test_a_node_that_cannot_store_it_trains(plan: Plans, tmp_path: Path) -> None:
    (tmp_path / "topology").write_text("no folder")
    process = start(plan(command=["echo", "done"], launcher="spawn", resources=NODE), tmp_path)
    output, _ = process.communicate(timeout=240)
    assert (process.returncode, output) == (0, "")
    assert status(tmp_path)["exit_code"] == 0
