"""Whole scripts of five sites that have little in common, for each launcher and container."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hpc_train.base.errors import PlanError, SpecError
from hpc_train.base.yamlfile import read
from hpc_train.jobs.read_job import build_job
from hpc_train.lint.lint_file import make_linter
from hpc_train.lint.lint_script import lint_script
from hpc_train.plans.build import make_plan
from hpc_train.scripts.render import render_script
from hpc_train.sites.load import load_site

GOLDEN = Path(__file__).parents[1] / "golden"
LAUNCHERS = {
    "fjord": ("srun", "torchrun", "accelerate", "deepspeed", "mpirun", "spawn", "single"),
    "basalt": ("srun", "torchrun", "accelerate", "deepspeed", "single"),
    "meadow": ("mpirun", "srun", "torchrun", "ibrun", "spawn", "single"),
    "tundra": ("torchrun", "mpirun", "accelerate", "spawn", "single"),
    "heath": ("mpiexec", "torchrun", "single"),
}
ALL = (
    "srun",
    "torchrun",
    "mpirun",
    "mpiexec",
    "ibrun",
    "accelerate",
    "deepspeed",
    "spawn",
    "single",
)


class Case(NamedTuple):
    """A script on record: where, how it is launched, in an image or not, on how many nodes."""

    site: str
    launcher: str
    box: bool
    nodes: int

    @property
    def path(self) -> Path:
        """Return the file of the record."""
        box = "-box" if self.box else ""
        return GOLDEN / self.site / f"{self.launcher}{box}-{self.nodes}.sbatch"


def refusal(case: Case) -> str | None:
    """Return what the complaint says of a case that has no script."""
    if case.launcher not in LAUNCHERS[case.site]:
        return "forbids" if (case.site, case.launcher) in FORBIDDEN else "does not offer"
    if case.launcher == "single" and case.nodes > 1:
        return "single runs one process, not 2 ranks"
    if case.site == "fjord" and case.box and case.launcher in ("mpirun", "single"):
        return f"pyxis opens images through srun, which the launcher {case.launcher} does not use"
    return None


FORBIDDEN = {("fjord", "ibrun"), ("basalt", "mpirun"), ("meadow", "deepspeed"), ("tundra", "ibrun")}
EVERY = [
    Case(site, launcher, box, nodes)
    for site in LAUNCHERS
    for launcher in ALL
    for box in (False, True)
    for nodes in (1, 2)
]
CASES = [case for case in EVERY if refusal(case) is None]


def name_of(case: Case) -> str:
    return f"{case.site}-{case.path.stem}"


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comments of a script name files as they were given, so all are given relative to here."""
    monkeypatch.chdir(GOLDEN)


def render(case: Case) -> str:
    path = Path(f"jobs/{case.site}.yaml")
    document = read(path, SpecError)
    data: dict[str, Any] = {**document.data, "launcher": case.launcher}
    resources = {**data["resources"], "nodes": case.nodes}
    if case.launcher == "single":
        gpus = min(1, resources.get("gpus_per_node", 0))
        resources.update(tasks_per_node=1, gpus_per_node=gpus)
    data["resources"] = resources
    if not case.box:
        del data["container"]
    job = build_job(data, document.origins, (), path)
    plan = make_plan(job, load_site(f"sites/{case.site}.yaml"))
    assert plan.warnings == ()
    return render_script(plan, [Path("templates")]).text


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_script_is_the_one_on_record(case: Case) -> None:
    """With HPCTRAIN_WRITE_GOLDEN=1 the records are written anew; read the diff."""
    text = render(case)
    if os.environ.get("HPCTRAIN_WRITE_GOLDEN") == "1":
        case.path.parent.mkdir(exist_ok=True)
        case.path.write_bytes(text.encode())
    assert case.path.exists(), f"no record: {case.path}"
    assert text.encode() == case.path.read_bytes()


def test_each_record_belongs_to_a_case() -> None:
    assert {path for path in GOLDEN.glob("*/*") if path.suffix not in (".yaml", ".j2")} == {
        case.path for case in CASES
    }


@pytest.mark.parametrize("case", [one for one in EVERY if refusal(one)], ids=name_of)
def test_what_a_site_cannot_launch_is_refused(case: Case) -> None:
    with pytest.raises(PlanError, match=refusal(case)):
        render(case)


# Of each launcher at each site, the largest script.
LARGEST = {(case.site, case.launcher): case for case in sorted(CASES)}.values()


@pytest.mark.process
@pytest.mark.parametrize(
    "cases",
    [tuple(LARGEST), pytest.param(tuple(CASES), marks=pytest.mark.long)],
    ids=["largest", "all"],
)
def test_bash_and_shellcheck_have_no_complaint(cases: tuple[Case, ...]) -> None:
    """Shellcheck knows of what it must not complain from comments of the script alone."""
    files = [str(case.path.relative_to(GOLDEN)) for case in cases]
    code = 'code=0; for file; do "$BASH" -n "$file" || code=1; done; exit "$code"'
    done = subprocess.run(["bash", "-c", code, "bash", *files], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = subprocess.run(["shellcheck", "--norc", *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("site", LAUNCHERS)
def test_lint_has_no_complaint(site: str) -> None:
    context = make_linter(site=f"sites/{site}.yaml").context
    assert context.site is not None
    for case in CASES:
        if case.site == site:
            found = lint_script(case.path.read_text(encoding="utf-8"), context)
            assert [one for one in found if one.severity != "info"] == [], name_of(case)
