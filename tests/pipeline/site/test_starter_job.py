"""The job file that `site show --job` prints renders for each shipped profile."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hpc_train.data_folders import profile_folder, template_path
from hpc_train.errors import PlanError, SpecError
from hpc_train.lint.lint_script import lint_script
from hpc_train.pipeline.lint import LintOptions, make_linter
from hpc_train.pipeline.site.starter_job import starter_job
from hpc_train.plans.build import make_plan
from hpc_train.plans.launchers.base import find_launcher
from hpc_train.scripts.render import render_script
from hpc_train.sites.load import load_site
from hpc_train.specs.job import build_job
from hpc_train.yamlfile import read

SHIPPED = sorted(path.stem for path in profile_folder().glob("*.yaml"))


@pytest.mark.parametrize("name", SHIPPED)
def test_it_renders_and_lint_finds_no_error(name: str, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(starter_job(name))
    document = read(path, SpecError)
    job = build_job(document.data, document.origins, (), path)
    site = load_site(name)
    plan = make_plan(job, site)
    assert plan.topology.nodes == (1 if name == "local" else 2)
    text = render_script(plan, template_path(path)).text
    script = tmp_path / "job.sbatch"
    script.write_text(text)
    assert subprocess.run(["bash", "-n", script], capture_output=True).returncode == 0
    linter = make_linter(LintOptions(site=name))
    found = lint_script(text, linter.context, linter.rules)
    assert [one for one in found if one.severity == "error"] == []


@pytest.mark.parametrize("name", SHIPPED)
def test_each_launcher_that_the_comment_names_starts_the_job(name: str, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(starter_job(name))
    site = load_site(name)
    document = read(path, SpecError)
    row = next(row for row in path.read_text().splitlines() if row.startswith("launcher: "))
    others = row.partition("# or ")[2].split(", ")
    assert others != [""]
    for launcher in others:
        assert launcher in site.value.launchers.allowed
        job = build_job({**document.data, "launcher": launcher}, document.origins, (), path)
        topology = make_plan(job, site).topology
        assert topology.nodes == 1 or not find_launcher(launcher).one_node


def test_a_profile_that_no_job_fits_says_why(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    path.write_text(
        "schema: 1\nname: none\ndescription: d\nscheduler: slurm\n"
        "launchers: {default: single, allowed: [single]}\n"
        "partitions: [{name: p, default: true, min_nodes: 2, cpus_per_gpu: 1}]\n"
    )
    with pytest.raises(PlanError, match="single runs one process"):
        starter_job(str(path))
