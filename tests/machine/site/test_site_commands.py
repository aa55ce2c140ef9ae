"""Profiles listed, shown, checked and recognised."""

import datetime
import re
from pathlib import Path

import pytest

from hpc_train.machine.check_site import (
    ProfileCheck,
    ProfileSummary,
    check_site,
    list_sites,
    show_profile,
)
from hpc_train.sites.detection import Host, detect_site, this_host
from hpc_train.sites.load import load_site
from hpc_train.sites.merge import source_of
from hpc_train.sites.search import announcement, find_profile
from tests.cases import cases
from tests.machine.machines import Slurm

TODAY = datetime.date(2026, 11, 21)
SITE = """\
schema: 1
name: mine
description: d
verified_on: 2026-08
scheduler: slurm
sources:
  - {what: manual, date: 2026-08-20, confidence: high}
  - {what: a script, confidence: low, covers: [partitions.gpu]}
launchers: {default: srun, allowed: [srun, torchrun], srun_args: [-K1, --wait=60]}
partitions:
  - {name: cpu, cpus_per_node: 64}
  - {name: gpu, default: true, max_nodes: 4, cpus_per_node: 64, gpus_per_node: 4, gpu_type: a100}
detect: {env: {MY_CLUSTER: mine}, clusters: [mine], hosts: ['login*.mine.example']}
"""


@pytest.fixture
def mine(profiles: Path) -> Path:
    path = profiles / "mine.yaml"
    path.write_text(SITE)
    return path


def test_list_sums_a_profile_up(mine: Path) -> None:
    rows = {one.name: one for one in list_sites() if isinstance(one, ProfileSummary)}
    assert rows["mine"].gpus == ("4 a100",)
    assert (rows["mine"].verified_on, rows["mine"].confidence) == ("2026-08", "low")
    assert (rows["mine"].layer, rows["local"].layer) == ("user", "shipped")


def test_a_value_rests_on_the_nearest_source(mine: Path) -> None:
    site = load_site("mine")
    what = {
        key: source.what if (source := source_of(site, key)) else None
        for key in ("partitions.1.max_nodes", "partitions.gpu.max_nodes", "partitions.0.name")
    }
    assert what == {
        "partitions.1.max_nodes": "a script",
        "partitions.gpu.max_nodes": "a script",
        "partitions.0.name": "manual",
    }


def test_show_leaves_defaults_out_unless_asked(mine: Path) -> None:
    found = show_profile("mine")
    shown = {row.key: row for row in found.values}
    assert shown["partitions.gpu.gpu_type"].value == "a100"
    assert shown["partitions.gpu.gpu_type"].source == 2
    assert "rendezvous.port" not in shown
    everything = {row.key: row for row in show_profile("mine", defaults=True).values}
    assert everything["rendezvous.port"].layer == "default"
    assert found.unknown[-3:] == (
        "partitions.cpu.max_nodes",
        "partitions.cpu.gpus_per_node",
        "partitions.gpu.max_time",
    )


def messages(check: ProfileCheck) -> str:
    return "\n".join(f"{one.severity}: {one.place}: {one.message}" for one in check.findings)


def test_check_plans_and_reads_jobs(mine: Path) -> None:
    made = check_site("mine", TODAY)
    assert messages(made) == ""
    # 5 for each partition, and 1 without.
    assert made.jobs == 11


@pytest.mark.parametrize(
    ("old", "new", "message"),
    cases("machine/site/mistakes_in_profiles.yaml", "check_names_what_is_wrong"),
)
def test_check_names_what_is_wrong(mine: Path, old: str, new: str, message: str) -> None:
    assert old in SITE
    mine.write_text(SITE.replace(old, new))
    found = messages(check_site("mine", TODAY))
    assert re.search(message, found), found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("detect:", "required: [constraint]\ndetect:"),
        ("detect:", "required: [qos]\ndetect:"),
        ("detect:", "required: [qos]\nqos: [{name: '*', max_time: 1h}]\ndetect:"),
        ("cpus_per_node: 64}", "cpus_per_node: 64, gpus_per_node: 4, min_nodes: 2, max_gpus: 4}"),
        ("name: gpu, default: true", "name: gpu, select: {constraint: a, qos: b}, default: true"),
        ("detect:", "partition_choice: fitting\ndetect:"),
        ("cpus_per_node: 64}", "cpus_per_node: 64, gpus_per_node: 4, max_gpus: 0}"),
        ("detect:", "partition_choice: job\ndetect:"),
        ("detect:", "required: [partition]\ndetect:"),
    ],
)
def test_check_finds_a_job_for_each_demand(mine: Path, old: str, new: str) -> None:
    text = SITE.replace(old, new)
    assert text != SITE
    mine.write_text(text.replace("default: true, ", "") if "partition" in new else text)
    made = check_site("mine", TODAY)
    assert messages(made) == ""
    assert made.jobs >= 8


@pytest.mark.parametrize(
    ("host", "reasons"),
    [
        (Host(names=("x",), cluster="", env={"MY_CLUSTER": "mine"}), ("MY_CLUSTER=mine",)),
        (Host(names=("x",), cluster="mine", env={}), ("ClusterName mine",)),
        (Host(names=("login2.mine.example",), cluster="", env={}), ("host login2.mine.example",)),
        (Host(names=("login2",), cluster="other", env={"MY_CLUSTER": "x"}), None),
    ],
)
def test_detect_gives_its_reasons(mine: Path, host: Host, reasons: tuple[str, ...] | None) -> None:
    found = {match.name: match.reasons for match in detect_site(host).matches}
    assert found.get("mine") == reasons
    assert "slurm-generic" not in found


def test_detect_asks_slurm_where_there_is_one(mine: Path) -> None:
    host = this_host(Slurm("lab"))
    assert (host.cluster, host.problem) == ("lab", "")
    nowhere = this_host(Slurm("lab", config="not installed"))
    assert (nowhere.cluster, nowhere.problem) == ("", "")


@pytest.mark.parametrize(
    ("folder", "name", "told"),
    [
        ("here", "mine", 1),
        ("here/site_profiles", "mine", 1),
        ("own", "mine", 0),
        ("here", "./mine.yaml", 0),
    ],
)
def test_a_profile_of_this_folder_is_announced(
    mine: Path, monkeypatch: pytest.MonkeyPatch, folder: str, name: str, told: int
) -> None:
    place = mine.parents[1] / folder
    place.mkdir(parents=True, exist_ok=True)
    mine.rename(place / "mine.yaml")
    (mine.parents[1] / "here").mkdir(exist_ok=True)
    monkeypatch.chdir(mine.parents[1] / "here")
    said = announcement(name, find_profile(name))
    assert len(said) == told
    assert all("of this folder" in sentence for sentence in said)
