"""The job file that `site show --job` prints renders for each shipped profile."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from hpc_train.base.data_folders import profile_folder, template_path
from hpc_train.base.errors import PlanError, ProbeError, SpecError
from hpc_train.base.yamlfile import read
from hpc_train.cli.group import cli
from hpc_train.jobs.read_job import build_job
from hpc_train.lint.lint_file import make_linter
from hpc_train.lint.lint_script import lint_script
from hpc_train.machine.starter_job import starter_job
from hpc_train.plans.build import make_plan
from hpc_train.plans.launchers.base import find_launcher
from hpc_train.scripts.render import render_script
from hpc_train.sites.load import load_site
from tests.servers.pbs import RunningPbs, running
from tests.servers.pbs_jobs import NodeSize

SHIPPED = sorted(path.stem for path in profile_folder().glob("*.yaml"))


@pytest.mark.parametrize("name", SHIPPED)
def test_it_renders_and_lint_finds_no_error(name: str, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(starter_job(name))
    document = read(path, SpecError)
    schema = Path(path.read_text().partition("\n")[0].partition("$schema=")[2])
    check = jsonschema.Draft202012Validator(json.loads(schema.read_bytes()))
    assert check.is_valid(document.data)
    job = build_job(document.data, document.origins, (), path)
    site = load_site(name)
    plan = make_plan(job, site)
    assert plan.topology.nodes == (1 if name == "local" else 2)
    text = render_script(plan, template_path(path)).text
    script = tmp_path / "job.sbatch"
    script.write_text(text)
    assert subprocess.run(["bash", "-n", script], capture_output=True).returncode == 0
    linter = make_linter(site=name)
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


@pytest.fixture
def pbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningPbs]:
    with running(tmp_path, monkeypatch, NodeSize(nodes=3, ncpus=4, ngpus=2)) as found:
        monkeypatch.chdir(found.work)
        for name in ("SLURM_CONF", "SLURM_CLUSTER_NAME"):
            monkeypatch.delenv(name, raising=False)
        yield found


def init(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["site", "init", *words], catch_exceptions=False)
    return done.exit_code, done.output


@pytest.mark.process
def test_the_draft_says_what_the_server_says(pbs: RunningPbs) -> None:
    code, output = init("mine")
    assert code == 0, output
    site = load_site("site_profiles/mine.yaml").value
    (queue,) = site.partitions
    assert (site.scheduler, queue.name, queue.default) == ("pbs", "workq", True)
    assert (queue.nodes, queue.cpus_per_node, queue.gpus_per_node) == (3, 4, 2)
    assert (str(queue.max_time), str(queue.mem_per_node)) == ("01:00:00", "8G")


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, list(words), catch_exceptions=False)
    return done.exit_code, done.output


@pytest.mark.process
def test_a_draft_agrees_with_the_server(pbs: RunningPbs) -> None:
    init("mine")
    code, output = run("site", "check", "./site_profiles/mine.yaml", "--live")
    last = "mine and the cluster pbs agree: 3 values; version 23.06.06"
    assert (code, output.splitlines()[-1]) == (0, last)


@pytest.mark.process
def test_a_server_that_is_down_is_told(pbs: RunningPbs) -> None:
    init("mine")
    pbs.server.end()
    with pytest.raises(ProbeError, match="cannot connect to server") as failure:
        run("site", "check", "./site_profiles/mine.yaml", "--live")
    assert failure.value.exit_code == 3
    lines = run("doctor")[1].splitlines()
    assert lines[0] == "pbs"
    assert any("PBS's commands are installed, but do not answer" in line for line in lines)
