"""The job file that `site show --job` prints renders for each shipped profile."""

from __future__ import annotations

import re
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


def test_a_required_memory_is_that_of_a_node() -> None:
    assert "  mem: 382G  # what a node has\n" in starter_job("gadi")


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


@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_the_users_has_a_comment(name: str) -> None:
    text, account = starter_job(name), load_site(name).value.account
    rows = [row for row in text.splitlines() if row.startswith("account: ")]
    for row in rows:
        value, _, comment = row.removeprefix("account: ").partition("  # ")
        assert "placeholder: your own account" in comment
        assert account.pattern is None or re.fullmatch(account.pattern, value)
    assert bool(rows) or not account.required


def test_a_partition_that_the_user_names_is_marked() -> None:
    row = next(one for one in starter_job("nebius").splitlines() if one.startswith("partition"))
    assert "placeholder: your cluster's own name" in row


@pytest.mark.parametrize(("name", "partition"), [("mahti", "gpumedium"), ("roihu", "gpularge")])
def test_whole_nodes_come_first(name: str, partition: str) -> None:
    rows = starter_job(name).splitlines()
    assert f"partition: {partition}" in [row.partition("  #")[0] for row in rows]
    assert "  gpus_per_node: 4" in rows


def test_a_profile_that_no_job_fits_says_why(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    path.write_text(
        "schema: 1\nname: none\ndescription: d\nscheduler: slurm\n"
        "launchers: {default: single, allowed: [single]}\n"
        "partitions: [{name: p, default: true, min_nodes: 2, cpus_per_gpu: 1}]\n"
    )
    with pytest.raises(PlanError, match="single runs one process"):
        starter_job(str(path))


@pytest.mark.parametrize("name", ["delta", "narval", "fir", "rorqual"])
def test_memory_is_stated_where_the_default_is_a_little(name: str, tmp_path: Path) -> None:
    path, site, text = tmp_path / "job.yaml", load_site(name), starter_job(name)
    for kept in (True, False):
        path.write_text(text if kept else re.sub("(?m)^ *mem: .*\\n", "", text))
        document = read(path, SpecError)
        job = build_job(document.data, document.origins, (), path)
        assert any("memory" in word for word in make_plan(job, site).warnings) != kept
