"""The key `sites` of a job: what applies at one site only."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.base.errors import HpcTrainError
from hpc_train.jobs.job import SourcedJob
from hpc_train.jobs.override import parse_setting
from hpc_train.jobs.points_of_file import points_of
from hpc_train.jobs.read_job import SiteNames

JOB = """\
name: j
command: [python, train.py]
resources: {nodes: 1, time: 10m}
account: mine
env: {A: 1, B: 2}
launcher_args: [--verbose]
sites:
  far:
    partition: debug
    nodes: 4
    resources: {time: 1h}
    env:
      A: 01
      C: 3
    launcher_args: []
    account: null
  near: {lifecycle: {}}
"""
KNOWN = ("far", "near", "third")


def job(path: Path, site: str, *settings: str, text: str = JOB) -> SourcedJob:
    path.joinpath("job.yaml").write_text(text)
    names = SiteNames(chosen=lambda: site, known=lambda: KNOWN)
    overrides = tuple(map(parse_setting, settings))
    _, points = points_of(path / "job.yaml", overrides=overrides, names=names)
    return points[0].job


def refusal(path: Path, text: str, *settings: str) -> tuple[str, str]:
    with pytest.raises(HpcTrainError) as caught:
        job(path, "third", *settings, text=text)
    return caught.value.message.removeprefix(f"{path}/"), caught.value.hint


def test_keys_of_the_site_are_merged_into_the_job(tmp_path: Path) -> None:
    far = job(tmp_path, "./sites/far.yaml").value
    assert (far.partition, far.resources.nodes, str(far.resources.time)) == (
        "debug",
        4,
        "01:00:00",
    )
    assert far.env == {"A": "01", "B": "2", "C": "3"}
    assert (far.launcher_args, far.account, far.sites) == ((), None, None)


def test_other_sites_have_the_keys_of_the_job(tmp_path: Path) -> None:
    third = job(tmp_path, "third").value
    assert (third.partition, third.resources.nodes, third.account) == (None, 1, "mine")
    assert (third.env, third.lifecycle) == ({"A": "1", "B": "2"}, None)
    assert job(tmp_path, "near").value.lifecycle is not None


def test_each_value_has_its_own_line(tmp_path: Path) -> None:
    far = job(tmp_path, "far")
    lines = {
        key: far.origin(key).rpartition(":")[2]
        for key in ("partition", "resources.nodes", "resources.time", "env.A", "env.B", "env.C")
    }
    assert lines == {
        "partition": "9",
        "resources.nodes": "10",
        "resources.time": "11",
        "env.A": "13",
        "env.B": "5",
        "env.C": "14",
    }
    assert "account" not in far.origins
    assert not [key for key in far.origins if key.startswith("sites")]


def test_options_take_precedence_over_keys_of_a_site(tmp_path: Path) -> None:
    far = job(tmp_path, "far", "nodes=2", "sites.far.nodes=8", "sites.far.partition=long")
    assert (far.value.resources.nodes, far.value.partition) == (2, "long")
    assert far.origin("partition") == "--set sites.far.partition"
    assert job(tmp_path, "third", "sites.third.nodes=8").value.resources.nodes == 8


def test_an_empty_mapping_keeps_what_the_job_has(tmp_path: Path) -> None:
    text = "command: [a]\nlifecycle: {max_restarts: 3}\nsites: {near: {lifecycle: {}}}\n"
    near = job(tmp_path, "near", text=text).value
    assert near.lifecycle is not None
    assert near.lifecycle.max_restarts == 3


@pytest.mark.parametrize(
    ("sites", "message", "hint"),
    [
        ("{fra: {nodes: 2}}", "sites: unknown site 'fra'; did you mean 'far'?", "site list"),
        ("{far: {acount: x}}", "'acount' is not a key of a job; did you mean 'account'?", "files"),
        ("{far: {sites: {}}}", "sites.far has keys of a job, not sites", "sites: {NAME: "),
        ("{far: {site: x}}", "the site of a run is no key of its job", "--site"),
        ("{far: {nodes: two}}", "resources.nodes: must be a whole number", "files"),
        ("{far: {resources: {nods: 2}}}", "unknown key 'resources.nods'; did you mean", "files"),
        ("{far: {account: {a: 1}}}", "account: must be text", "files"),
        ("{far: {lifecycle: {max_restarts: {a: 1}}}}", "lifecycle.max_restarts: must be", "files"),
        ("{far: 7}", "sites.far: must be a mapping with keys of a job", "sites: {NAME: "),
        ("[far]", "sites: must be a mapping with names of sites", "sites: {NAME: "),
        ("null", "sites: must be a mapping with names of sites", "sites: {NAME: "),
    ],
)
def test_wrong_keys_of_any_site_are_refused(
    tmp_path: Path, sites: str, message: str, hint: str
) -> None:
    found = refusal(tmp_path, f"command: [a]\nsites: {sites}\n")
    assert found[0].startswith(f"job.yaml:2: {message}")
    assert hint in found[1]


def test_an_option_for_an_unknown_site_is_named(tmp_path: Path) -> None:
    message, _ = refusal(tmp_path, "command: [a]\n", "sites.fra.nodes=2")
    assert message.startswith("--set sites.fra.nodes: sites: unknown site 'fra'; did you mean")


def test_a_study_has_no_keys_of_sites_and_no_axis_of_one(tmp_path: Path) -> None:
    study = "job: {command: [a]}\nscaling: strong\n"
    message, hint = refusal(tmp_path, f"{study}axes: {{nodes: [1]}}\nsites: {{far: {{}}}}\n")
    assert message.startswith("job.yaml:4: sites is a key of a job")
    assert "below job:" in hint
    message, hint = refusal(tmp_path, f"{study}axes: {{sites.far.nodes: [1]}}\n")
    assert message == (
        "job.yaml:3: an axis is a key of the job at all sites, not 'sites.far.nodes'"
    )
