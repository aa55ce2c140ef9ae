"""Pages on reports: every key, state, flag, file and option stands there; every example works."""

import inspect
import re
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hpc_train.base.decode import decode
from hpc_train.base.errors import SpecError
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import LaunchPlan
from hpc_train.reports.report import MEANING
from hpc_train.scaling.measurements import FlagCode
from hpc_train.scripts.render import render_script
from hpc_train.sites.load import load_site
from tests.project.shown_commands import ROOT, preloaded_environment, run_page

READING = ROOT / "docs" / "reading-a-report.md"
STUDY = ROOT / "results" / "studies" / "digits-two-cores"


def section(name: str) -> str:
    text = READING.read_text(encoding="utf-8")
    found: list[tuple[str, str]] = re.findall(
        r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )
    return dict(found)[name]


def table(name: str) -> list[list[str]]:
    """Return the cells of the tables of a section, without headings."""
    rows = re.findall(r"^\| (`.+) \|$", section(name), re.MULTILINE)
    return [row.split(" | ") for row in rows]


def code(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_every_flag_is_explained_on_the_page_and_in_words() -> None:
    listed = {key for row in table("Flags") for key in code(row[0])}
    sources = [*(ROOT / "hpc_train" / "scaling").glob("*.py"), Path(inspect.getfile(FlagCode))]
    texts = "".join(path.read_text(encoding="utf-8") for path in sources)
    raised = {code.value for code in FlagCode if f"FlagCode.{code.name}" in texts}
    assert listed == {code.value for code in MEANING} == {code.value for code in FlagCode} == raised


@pytest.mark.process
def test_examples_print_what_is_shown(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copytree(STUDY, tmp_path / "results" / "digits-strong")
    assert run_page(READING, tmp_path, preloaded_environment(tmp_path / "bin")) >= 8


PAGE = (Path(__file__).resolve().parents[2] / "docs/writing-a-site.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
SKELETON = """\
schema: 1
name: example
description: d
scheduler: slurm
launchers: {default: srun, allowed: [srun, torchrun, mpirun]}
"""


def examples() -> list[tuple[str, str]]:
    """Return each part of a profile and what a script gets for it, which may be nothing."""
    found = [(match["kind"], match["text"]) for match in BLOCK.finditer(PAGE)]
    return [
        (text, after[1] if after[0] == "sh" else "")
        for (kind, text), after in pairwise([*found, ("", "")])
        if kind == "yaml part"
    ]


def plan_of(part: str, folder: Path, launcher: str = "srun") -> LaunchPlan:
    path = folder / "example.yaml"
    path.write_text(SKELETON + part, encoding="utf-8")
    keys: dict[str, Any] = {"nodes": 2, "gpus_per_node": 4, "cpus_per_task": 8}
    data = {"name": "j", "command": ["true"], "launcher": launcher, "resources": keys}
    return make_plan(decode(data, JobSpec, {"": "job.yaml"}, SpecError), load_site(str(path)))


@pytest.mark.parametrize(("part", "lines"), examples())
def test_examples_give_what_stands_below_them(part: str, lines: str, tmp_path: Path) -> None:
    plan = plan_of(part, tmp_path)
    assert plan.warnings == ()
    script = [line.partition("  # ")[0] for line in render_script(plan).text.splitlines()]
    words = [line.removeprefix("export") for line in lines.splitlines()]
    assert [one for one in words if not any(one in line for line in script)] == []
    if "already_set_by" in part:
        assert not any("NCCL_CROSS_NIC" in line for line in script)
    else:
        assert lines, "an example without a result"
