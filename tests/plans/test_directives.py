"""`directives`: more options of sbatch, from the job and the site."""

import json
from pathlib import Path
from typing import Any

import pytest

from hpc_train.base.errors import HpcTrainError, PlanError, SiteProfileError, SpecError
from hpc_train.jobs.override import parse_setting
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import LaunchPlan
from hpc_train.plans.shared_allocation import allocate
from hpc_train.scripts.explain import explain
from hpc_train.scripts.render import render_script
from hpc_train.sites.load import load_site
from tests.jobs.read_files import load_job

SITE: dict[str, Any] = {
    "schema": 1,
    "name": "big",
    "description": "d",
    "scheduler": "slurm",
    "launchers": {"default": "srun", "allowed": ["srun"]},
}


def planned(
    folder: Path, job: dict[str, Any], site: dict[str, Any] | None = None, **keys: Any
) -> LaunchPlan:
    """Plan a job with these directives on a site with those."""
    (folder / "big.yaml").write_text(json.dumps({**SITE, "directives": site or {}}))
    text = json.dumps({"command": ["a"], **keys, "directives": job}).replace(', "dir', ',\n"dir')
    (folder / "job.yaml").write_text(text)
    found = load_job(folder / "job.yaml", [parse_setting("directives.nice=5")])
    return make_plan(found, load_site(str(folder / "big.yaml")))


def test_they_stand_behind_ours_and_the_job_wins(tmp_path: Path) -> None:
    site = {"licenses": "fs:1", "reservation": "all", "spread-job": True}
    job = {"reservation": "maint", "switches": "1@10", "requeue": "", "spread-job": False}
    plan = planned(tmp_path, job, site)
    lines = [line for line in render_script(plan).text.splitlines() if line.startswith("#SBATCH")]
    own = lines.index("#SBATCH --open-mode=append") + 1
    assert lines[own:] == [
        "#SBATCH --licenses=fs:1",
        "#SBATCH --reservation=maint",
        "#SBATCH --switches=1@10",
        "#SBATCH --requeue",
        "#SBATCH --nice=5",
    ]
    found = {
        one.name: one.origin
        for one in explain(plan, load_site(str(tmp_path / "big.yaml")))
        if one.kind == "directive"
    }
    assert found["--licenses"] == f"{tmp_path}/big.yaml:1"
    assert found["--reservation"] == f"{tmp_path}/job.yaml:2"
    assert found["--nice"] == "--set directives.nice"


REFUSED: list[tuple[str, Any, str, str]] = [
    ("nodes", 2, "hpctrain sets --nodes itself", "resources.nodes"),
    ("job-name", "x", "hpctrain sets --job-name itself", "use name"),
    ("time", "1:00", "hpctrain sets --time itself", "resources.time"),
    ("output", "x", "hpctrain needs --output to track the run", ""),
    ("wrap", "x", "hpctrain needs --wrap to track the run", ""),
    ("--reservation", "x", "sbatch has no option '--reservation'; did you mean 'reserv", "long"),
    ("tyme", "1h", "sbatch has no option 'tyme'; did you mean 'time'?", "long"),
    ("mail_type", "END", "sbatch has no option 'mail_type'; did you mean 'mail-type'?", "long"),
    ("reservatoin", "x", "did you mean 'reservation'?", "long names"),
    ("reservation", True, "--reservation needs a value", ""),
    ("reservation", "", "--reservation needs a value", ""),
    ("spread-job", "yes", "--spread-job takes no value", "`spread-job: true`"),
    ("reservation", "a b", "'a b' cannot be written as an #SBATCH value", ""),
    ("comment", "x", "hpctrain sets --comment itself", "use comment"),
]


@pytest.mark.parametrize("where", ["job", "site"])
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0])
def test_what_is_refused(tmp_path: Path, where: str, case: tuple[str, Any, str, str]) -> None:
    name, value, said, hint = case
    kind: type[HpcTrainError] = SpecError if where == "job" else SiteProfileError
    with pytest.raises(kind) as failure:
        planned(tmp_path, **{"job": {}, where: {name: value}})
    file = "job.yaml:2" if where == "job" else "big.yaml:1"
    start = f"{tmp_path}/{file}: directives.{name}: "
    assert failure.value.message.startswith(start)
    assert said in failure.value.message
    assert hint in failure.value.hint


def test_an_allocation_has_them_once(tmp_path: Path) -> None:
    first, second = (planned(tmp_path, {"reservation": name}) for name in ("a", "b"))
    site = load_site(str(tmp_path / "big.yaml"))
    shared = allocate(site, [("x", first), ("y", first)], "s")
    assert [pair for pair in shared.directives if pair[0] == "reservation"] == [
        ("reservation", "a")
    ]
    with pytest.raises(PlanError, match=r"job\.yaml:2: reservation is a, b; with placement"):
        allocate(site, [("x", first), ("y", second)], "s")


@pytest.mark.parametrize(
    ("version", "option", "refused"),
    [
        ("23.11.4", "segment", "only from 24.05 on, and big has Slurm 23.11.4 "),
        ("24.05", "segment", None),
        ("24.11.5", "power", "sbatch has --power only until 23.11"),
        (None, "segment", None),
    ],
)
def test_options_of_other_versions(
    tmp_path: Path, version: str | None, option: str, refused: str | None
) -> None:
    site = {**SITE, **({"slurm": version} if version else {})}
    (tmp_path / "big.yaml").write_text(json.dumps(site))
    (tmp_path / "job.yaml").write_text(json.dumps({"command": ["a"], "directives": {option: "2"}}))
    job, big = load_job(tmp_path / "job.yaml", []), load_site(str(tmp_path / "big.yaml"))
    if refused is None:
        assert (option, "2") in make_plan(job, big).directives
    else:
        with pytest.raises(PlanError, match=refused) as error:
            make_plan(job, big)
        assert "job.yaml:1: " in str(error.value)
