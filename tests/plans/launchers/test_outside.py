"""A launcher from outside the package, added by the steps that CONTRIBUTING.md names."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hpc_train.base.decode import decode
from hpc_train.base.errors import PlanError, SpecError
from hpc_train.base.values import Sourced
from hpc_train.jobs.job import JobSpec
from hpc_train.lint.lint_file import make_linter
from hpc_train.lint.lint_script import lint_script
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import LaunchPlan
from hpc_train.scripts.explain import explain
from hpc_train.scripts.render import render_script
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import SiteProfile
from tests.plans.launchers.made import line
from tests.scripts.job_starts import save

RECIPE = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPE = RECIPE.partition("## Add a launcher\n")[2].partition("\n## ")[0]
PROFILE = """\
schema: 1
name: mysite
description: a cluster that has Flux
scheduler: {scheduler}
launchers: {{default: {default}, allowed: [flux, {default}], mpi: pmix}}
containers: {{runtime: {runtime}}}
partitions:
  - {{name: p, default: true, nodes: 16, gpus_per_node: {gpus}, cpus_per_node: 64}}
"""
# Flux on one machine: `start` runs what follows, `run` starts ranks with their names.
FLUX = """\
#!/bin/bash
[ "$1" = start ] && { shift; exec "$@"; }
shift
while [[ $1 == -* ]]; do
  [[ $1 == --ntasks ]] && tasks=$2
  shift 2
done
for ((i = 0; i < tasks; i++)); do
  FLUX_TASK_RANK=$i FLUX_TASK_LOCAL_ID=$i "$@" &
  ranks+=($!)
done
code=0
for rank in "${ranks[@]}"; do wait "$rank" || code=$?; done
exit "$code"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install the recipe's module with its entry point; profiles lie in the same folder."""
    module = re.findall(r"^```python\n(.+?)^```$", RECIPE, re.DOTALL | re.MULTILINE)
    entry, group = re.findall(
        r"entry point `NAME = (\S+)` of the group `(hpctrain\.\w+)`", " ".join(RECIPE.split())
    )[0]
    (tmp_path / "flux_for_hpctrain.py").write_text(module[0])
    metadata = tmp_path / "flux_for_hpctrain-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: flux-plug-in\nVersion: 1\n")
    target = entry.replace("package.module", "flux_for_hpctrain")
    (metadata / "entry_points.txt").write_text(f"[{group}]\nflux = {target}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("flux_for_hpctrain", None)


def mysite(
    home: Path, gpus: int = 4, scheduler: str = "slurm", runtime: str = "apptainer"
) -> Sourced[SiteProfile]:
    default = "srun" if scheduler == "slurm" else "single"
    path = home / "mysite.yaml"
    path.write_text(
        PROFILE.format(scheduler=scheduler, default=default, gpus=gpus, runtime=runtime)
    )
    return load_site(str(path))


def job(resources: Mapping[str, Any], **keys: Any) -> Sourced[JobSpec]:
    data = {"name": "j", "command": ["python", "t.py"], "resources": {"time": "1h", **resources}}
    return decode({**data, "launcher": "flux", **keys}, JobSpec, {"": "job.yaml"}, SpecError)


def options(plan: LaunchPlan) -> dict[str, str]:
    return dict(plan.directives)


SHAPES = [
    ({"gpus_per_node": 0, "tasks_per_node": 2}, 4),
    ({"gpus_per_node": 1}, 4),
    ({"gpus_per_node": 4}, 4),
    ({"nodes": 2, "gpus_per_node": 4}, 4),
    ({"nodes": 4, "gpus_per_node": 8}, 8),
    ({"nodes": 2, "gpus_per_node": 4, "tasks_per_node": 1}, 4),
]


@pytest.mark.parametrize(("shape", "gpus"), SHAPES)
@pytest.mark.parametrize("image", [None, "/images/torch.sif"])
def test_it_plans_renders_lints_and_explains(
    home: Path, shape: dict[str, int], gpus: int, image: str | None
) -> None:
    site = mysite(home, gpus)
    wanted = job(shape, **({"container": {"image": image}} if image else {}))
    plan = make_plan(wanted, site)
    text = line(plan.launch.argv)
    ranks, nodes = plan.topology.world_size, plan.topology.nodes
    assert text.startswith(f"srun --nodes={nodes} --ntasks={nodes} --ntasks-per-node=1 ")
    assert f" flux start flux run --nodes {nodes} --ntasks {ranks} " in text
    assert ("apptainer exec" in text) == (image is not None)
    assert options(plan)["ntasks-per-node"] == "1"
    script = render_script(plan).text
    checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert checked.stderr == ""
    linter = make_linter(site=str(home / "mysite.yaml"))
    assert lint_script(script, linter.context, linter.rules) == ()
    why = {row.name: row.why for row in explain(plan, site) if row.kind == "argument"}
    assert why["flux --ntasks"] == "the ranks of all nodes"
    assert why["srun --ntasks"].startswith("counted for the step")
    assert [name for name, reason in why.items() if not reason and image is None] == []


def test_its_facts_decide(home: Path) -> None:
    site = mysite(home)
    shape = {"nodes": 2, "gpus_per_node": 0}
    # `through_srun`: Slurm itself signals the ranks, and opens images for them.
    assert options(make_plan(job(shape, signal_before_end="2m"), site))["signal"] == "USR1@120"
    pyxis = mysite(home, runtime="pyxis")
    boxed = make_plan(job(shape, container={"image": "docker://x"}), pyxis)
    assert "--container-image=docker://x" in line(boxed.launch.argv)
    # `mpi`: the backend mpi is for it.
    assert make_plan(job(shape, backend="mpi"), site).backend == "mpi"
    # `elastic` is not said, so that only others are.
    with pytest.raises(PlanError, match="all ranks of the launcher flux end with the first"):
        make_plan(job(shape, elastic={}), site)


def test_it_starts_two_ranks(home: Path) -> None:
    flux = home / "flux"
    flux.write_text(FLUX)
    flux.chmod(0o755)
    (home / "t.sh").write_text("echo $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE\n")
    wanted = job({"tasks_per_node": 2}, command=["bash", "t.sh"])
    script = home / "job.sbatch"
    save(render_script(make_plan(wanted, mysite(home, 0, "local"))), script)
    outer = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "HPCTRAIN_"))}
    done = subprocess.run(
        ["bash", str(script)],
        cwd=home,
        env={**outer, "PATH": f"{home}:{outer['PATH']}"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    logs = sorted(path.read_text().strip() for path in home.rglob("rank-*.out"))
    assert logs == ["0 of 2, 0 of 2", "1 of 2, 1 of 2"]
