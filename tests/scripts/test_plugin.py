"""A plug-in of NCCL is forced only where its library is; otherwise the job says what brings it."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hpc_train.base.decode import decode
from hpc_train.base.errors import SpecError
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import LaunchPlan
from hpc_train.scripts.render import render_script
from hpc_train.sites.load import load_site

CALL = "hpctrain_require_plugin"
# Runs the program on two nodes, whose folders have their names; `%` stands for the name.
SRUN = """\
#!/bin/bash
[[ " $* " == *" --nodes=2 --ntasks=2 --ntasks-per-node=1 "* ]] || exit 9
while [ "$1" != bash ]; do shift; done
for node in n2 n1; do
  SLURMD_NODENAME=$node LD_LIBRARY_PATH=${LD_LIBRARY_PATH//%/$node} "$@"
done
"""


def plan_of(site: str, nodes: int = 2, **keys: Any) -> LaunchPlan:
    resources = {"nodes": nodes, "gpus_per_node": 4}
    data = {"name": "j", "command": ["true"], "resources": resources, **keys}
    return make_plan(decode(data, JobSpec, {"": "job.yaml"}, SpecError), load_site(site))


def check(plan: LaunchPlan, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the part of a script that looks for the library."""
    script = render_script(plan)
    (folder / "preflight.sh").write_text(dict(script.beside)["preflight.sh"])
    found = re.search(rf"^{CALL} (?:.*\\\n)*.*", script.text, re.M)
    assert found is not None
    clean = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "CONDA_PREFIX")}
    clean |= {"HPCTRAIN_RUN": str(folder), "HPCTRAIN_FAILURE_FILE": str(folder / "failure")}
    clean |= {"VIRTUAL_ENV": "", **env}
    program = folder / "bin" / "srun"
    program.parent.mkdir()
    program.write_text(SRUN)
    program.chmod(0o755)
    clean["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    argv = ["bash", "-euo", "pipefail", "-c", f". {folder}/preflight.sh\n{found[0]}; echo found"]
    return subprocess.run(argv, env=clean, capture_output=True, text=True, check=False)


def test_without_the_library_the_job_ends_and_names_the_module(tmp_path: Path) -> None:
    done = check(plan_of("perlmutter"), tmp_path, LD_LIBRARY_PATH=str(tmp_path))
    assert done.returncode == 1
    assert "NCCL_NET=AWS Libfabric needs a plug-in of NCCL" in done.stderr
    assert "on n1 n2; it comes with: module nccl; or env: {NCCL_NET: Socket}" in done.stderr
    assert (tmp_path / "failure.log").read_text() == done.stderr


@pytest.mark.parametrize("without", ["n1", "n2"])
def test_one_node_without_the_library_is_named(tmp_path: Path, without: str) -> None:
    for node in {"n1", "n2"} - {without}:
        (tmp_path / node).mkdir()
        (tmp_path / node / "libnccl-net.so").touch()
    done = check(plan_of("perlmutter"), tmp_path, LD_LIBRARY_PATH=f"{tmp_path}/%")
    assert done.returncode == 1
    assert f" on {without}; it comes with: module nccl" in done.stderr


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("libnccl-net.so", "LD_LIBRARY_PATH"),
        ("libnccl-net-ofi.so.0", "LD_LIBRARY_PATH"),
        ("librccl-net.so", "LD_LIBRARY_PATH"),
        ("lib/libnccl-net.so", "CONDA_PREFIX"),
        ("lib/libnccl-net.so", "VIRTUAL_ENV"),
        ("mine.so", "NCCL_NET_PLUGIN"),
    ],
)
def test_a_library_that_nccl_finds_is_enough(tmp_path: Path, file: str, name: str) -> None:
    path = tmp_path / "a b" / file
    path.parent.mkdir(parents=True)
    path.touch()
    places = {"LD_LIBRARY_PATH": f"/none:{path.parent}", "NCCL_NET_PLUGIN": str(path)}
    done = check(plan_of("perlmutter"), tmp_path, **{name: places.get(name, str(tmp_path / "a b"))})
    assert (done.returncode, done.stdout) == (0, "found\n"), done.stderr


def test_the_jobs_own_word_is_not_checked() -> None:
    plan = plan_of("perlmutter", env={"NCCL_NET": "AWS Libfabric"})
    assert plan.plugin is None and CALL not in render_script(plan).text
