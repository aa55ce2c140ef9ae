"""A study over several sites: each point is planned for its own, and submitted there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.base.errors import HpcTrainError
from hpc_train.jobs.override import parse_setting
from hpc_train.runs.run import PROFILE
from hpc_train.scripts.prepare import Prepared, Request, prepare
from hpc_train.submissions.retry import retry
from hpc_train.submissions.submit import submit
from tests.submissions.waiting import finished

STUDY = """\
name: s
job:
  command: [bash, -c, 'echo "at $AT with $X"; exit $((X == 1 ? 0 : 3))']
  launcher: single
  resources: {cpus_per_task: 1}
axes:
  site: [SITES]
  env.X: ["1", "2"]
repetitions: 1
scaling: strong
"""
SITE = """\
schema: 1
name: NAME
description: this machine, by another name
scheduler: SCHEDULER
sources: [{what: a test, date: 2026-11-01, confidence: high}]
launchers: {default: single, allowed: [single]}
partitions: [{name: machine, default: true, max_nodes: 1}]
env: {AT: NAME}
"""
Make = Callable[..., Prepared]


def site(path: Path, scheduler: str = "local") -> None:
    path.parent.mkdir(exist_ok=True)
    text = SITE.replace("NAME", path.stem).replace("SCHEDULER", scheduler)
    path.write_text(text)


@pytest.fixture
def make(desk: Path) -> Make:
    """Prepare a study over two sites: one of this folder, and one by a file beside the study."""
    site(desk / "here.yaml")
    site(desk / "studies/there.yaml")

    def prepared(sites: str = "here, ./there.yaml", *words: str, named: str = "") -> Prepared:
        path = desk / "studies/study.yaml"
        path.write_text(STUDY.replace("SITES", sites))
        overrides = tuple(map(parse_setting, words))
        return prepare(Request(path=path, site=named or None, overrides=overrides))

    return prepared


def refusal(make: Make, *words: str, named: str = "") -> tuple[str, str]:
    with pytest.raises(HpcTrainError) as caught:
        make(*words, named=named)
    return caught.value.message, caught.value.hint


def test_each_point_is_planned_for_its_site(make: Make) -> None:
    prepared = make()
    assert [one.name for one in prepared.sites] == ["here", "there"]
    assert [(p.axes["site"], p.axes["env.X"], p.plan.site) for p in prepared.points] == [
        ("here", "1", "here"),
        ("here", "2", "here"),
        ("there", "1", "there"),
        ("there", "2", "there"),
    ]
    assert [dict(point.plan.env)["AT"] for point in prepared.points_at(prepared.sites[1])] == [
        "there",
        "there",
    ]
    assert all(p.stem.startswith(f"{p.plan.site}-") for p in prepared.points)


@pytest.mark.process
def test_the_runs_of_all_sites_are_one_study(make: Make) -> None:
    prepared = make()
    done = submit(prepared, Path("results"), ["x"])
    runs = finished(done.home)
    found = {}
    for run in runs.values():
        assert run.manifest is not None
        file = Path(str(run.manifest.provenance[PROFILE])).name
        found[run.manifest.plan.site, run.manifest.axes["env.X"]] = (run.state.value, file)
        text = (run.folder.logs / "rank-0.out").read_text()
        assert text == f"at {run.manifest.plan.site} with {run.manifest.axes['env.X']}\n"
    assert found == {
        ("here", "1"): ("COMPLETED", "here.yaml"),
        ("here", "2"): ("FAILED", "here.yaml"),
        ("there", "1"): ("COMPLETED", "there.yaml"),
        ("there", "2"): ("FAILED", "there.yaml"),
    }
    again = retry(done.home, ["x"], lambda _: None)
    assert {run.run_id.partition("-")[0] for run in again.new} == {"here", "there"}
    finished(done.home)
    kept = submit(prepared, Path("results"), ["x"])
    assert (len(kept.new), len(kept.kept)) == (0, 4)


@pytest.mark.process
def test_a_site_that_refuses_is_named_and_the_rest_is_submitted_later(
    make: Make, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site(desk / "queue.yaml", "pbs")
    programs = desk / "programs"
    programs.mkdir()
    for name in ("qsub", "qstat", "qdel"):
        (programs / name).write_text("#!/bin/sh\necho 'qsub: Unknown queue' >&2; exit 170\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    said: list[str] = []
    prepared = make("here, queue", "resources.time=5m")
    with pytest.raises(HpcTrainError) as caught:
        submit(prepared, Path("results"), ["x"], say=said.append)
    assert caught.value.message.startswith("queue: ")
    assert "Unknown queue" in caught.value.message
    assert caught.value.hint.endswith("the same command submits what is missing")
    assert "2 of 4 runs were submitted, to other sites" in said
    assert any(text.startswith("cost at queue: 2 runs") for text in said)
    assert (desk / "results/s/study.json").exists()
    assert {name.partition("-")[0] for name in finished(desk / "results/s")} == {"here"}


def test_a_site_without_its_commands_is_refused_before_anything_is_submitted(
    make: Make, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site(desk / "queue.yaml", "pbs")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(HpcTrainError, match="qsub is not on PATH"):
        submit(make("here, queue", "resources.time=5m"), Path("results"), ["x"])
    assert not (desk / "results").exists()


def test_wrong_sites_are_refused_with_their_place(make: Make, desk: Path) -> None:
    place = f"{desk}/studies/study.yaml:7: "
    message, hint = refusal(make, "here, hree")
    assert message.startswith(f"{place}unknown site 'hree'; did you mean 'here'?")
    assert "hpctrain site list" in hint
    message, _ = refusal(make, "here, ./three.yaml")
    assert message == (
        f"{place}axes.site: {desk}/studies/three.yaml: no such file of a site profile; "
        "did you mean 'there.yaml'?"
    )
    message, _ = refusal(make, "here, ../here.yaml")
    assert message == f"{place}axes.site: two values have the name 'here', which names their runs"
    message, _ = refusal(make, "here, 7")
    assert message == f"{place}axes.site: must be names or files of site profiles, not 7"
    message, _ = refusal(make, "here, null")
    assert message == f"{place}axes.site: must be names or files of site profiles, not nothing"
    message, hint = refusal(make, f"here, {desk}")
    assert message == f"{place}axes.site: {desk}: it is a folder, not the file of a profile"
    assert "hpctrain site list" in hint
    message, hint = refusal(make, "here, alcf")
    assert message.startswith(f"{place}axes.site: site_profiles/families/alcf.yaml:4: alcf is a ")
    assert "hpctrain site list" in hint


def test_an_option_and_an_axis_of_sites_exclude_each_other(make: Make, desk: Path) -> None:
    message, hint = refusal(make, named="there")
    assert message.startswith("--site there: ")
    assert "the axis site names the sites of this study" in message
    assert hint == "change the axis: --set 'axes.site=[there]'"
    (desk / "studies/only.yaml").write_text((desk / "here.yaml").read_text())
    prepared = make("here, ./there.yaml", "axes.site=[here]")
    assert [one.name for one in prepared.sites] == ["here"]
    message, hint = refusal(make, "here, ./there.yaml", "site=here")
    assert message == "--set site: 'site' is an axis of this study"


def test_one_allocation_is_at_one_site(make: Make) -> None:
    message, _ = refusal(make, "here, ./there.yaml", "placement=nested")
    assert "placement nested needs one allocation, but the study has 2 sites" in message


@pytest.mark.process
def test_runs_at_a_site_that_the_study_has_no_more_are_named(make: Make) -> None:
    done = submit(make("here"), Path("results"), ["x"])
    finished(done.home)
    said: list[str] = []
    submit(make("./there.yaml"), Path("results"), ["x"], say=said.append)
    assert said[0] == (
        "its runs at here are left out of reports from now on; to keep both, submit with another "
        "--name, or with --set 'axes.site=[here, there]'"
    )
    finished(done.home)
    said.clear()
    submit(make("here, ./there.yaml"), Path("results"), ["x"], say=said.append)
    assert not any("left out" in text for text in said)
    finished(done.home)
