"""Whole scripts of five sites that have little in common, for each launcher and container."""

import os
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hpc_train.base.errors import PlanError, SpecError
from hpc_train.base.yamlfile import read
from hpc_train.jobs.read_job import build_job
from hpc_train.plans.build import make_plan
from hpc_train.scripts.render import render_script
from hpc_train.sites.load import load_site

GOLDEN = Path(__file__).parents[1] / "golden"
ALL = (
    *("srun", "torchrun", "mpirun", "mpiexec", "ibrun", "accelerate", "deepspeed", "spawn"),
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


EVERY = [
    Case(site, launcher, box, nodes)
    for site in ("fjord", "basalt", "meadow", "tundra", "heath")
    for launcher in ALL
    for box in (False, True)
    for nodes in (1, 2)
]
CASES = [case for case in EVERY if case.path.exists()]


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
    """With HPCTRAIN_WRITE_GOLDEN=1 records are written anew (touch a new one); read the diff."""
    text = render(case)
    if os.environ.get("HPCTRAIN_WRITE_GOLDEN") == "1":
        case.path.write_bytes(text.encode())
    assert text.encode() == case.path.read_bytes()


def test_what_has_no_record_cannot_be_launched() -> None:
    assert len(CASES) == len([*GOLDEN.glob("*/*.sbatch")]), "a record belongs to no case"
    for case in EVERY:
        if case not in CASES:
            with pytest.raises(PlanError):
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
