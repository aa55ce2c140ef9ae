"""What a twin is told of its site; pure text."""

import re
from pathlib import Path

import pytest

from hpc_train.base.data_folders import profile_folder
from hpc_train.lab.twins.slurm_conf import TwinPaths, account_settings, has_accounting, slurm_conf
from hpc_train.lab.twins.start_and_stop import assumptions, job_submit
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import Account, SiteProfile, sample_account

PLACE = TwinPaths(folder="/twins/mine", port=20001, dbd_port=0)
HEAD = """\
schema: 1
name: mine
description: d
scheduler: slurm
launchers: {default: srun, allowed: [srun]}
"""


def profile(folder: Path, text: str) -> SiteProfile:
    path = folder / "mine.yaml"
    path.write_text(HEAD + text)
    return load_site(str(path)).value


def line(text: str, start: str) -> str:
    (found,) = (one for one in text.splitlines() if one.startswith(start))
    return found


def test_partitions_that_slurm_knows_as_one(tmp_path: Path) -> None:
    mine = profile(
        tmp_path,
        "partitions:\n"
        "  - {name: a, max_nodes: 8, max_time: 1h, select: {constraint: a100&x}}\n"
        "  - {name: b, max_nodes: 4, max_time: 2h, select: {constraint: h100}}\n",
    )
    text = slurm_conf(mine, PLACE)
    assert line(text, "PartitionName") == (
        "PartitionName=unnamed Nodes=a-1n[1-8],b-2n[1-4] MaxTime=120 MaxNodes=8 MinNodes=1 "
        "Default=YES State=UP"
    )
    assert re.findall(r"Features=(\S+)", text) == ["a100,x", "h100"]
    rules = line(job_submit(mine), "rules = ")
    assert '["max_nodes"] = 4' in rules
    assert '["max_minutes"] = 120' in rules


def test_partitions_of_unknown_size_share_two_thousand_nodes(tmp_path: Path) -> None:
    mine = profile(
        tmp_path,
        "partitions:\n"
        "  - {name: a, gpus_per_node: 1}\n"
        "  - {name: b, gpus_per_node: 2, max_nodes: 7}\n"
        "  - {name: c, gpus_per_node: 3, min_nodes: 6000}\n"
        "  - {name: d, gpus_per_node: 3, nodes: 4}\n",
    )
    nodes = re.findall(r"NodeName=(\S+)", slurm_conf(mine, PLACE))
    assert nodes == ["a-1n[1-1000]", "b-2n[1-7]", "c-3n[1-6000]"]


def test_what_the_twin_assumes(tmp_path: Path) -> None:
    mine = profile(
        tmp_path,
        "partitions:\n"
        "  - {name: a, cpus_per_gpu: 100, gpus_per_node: 4, max_time: 1h}\n"
        "  - {name: b, nodes: 3, mem_per_node: 1G, cpus_per_node: 8}\n"
        "qos: [{name: y}, {name: z, max_jobs: 1, max_nodes: 2}, {name: '*'}]\n",
    )
    assert assumptions(mine) == (
        "accounts: any account is accepted; hpctrain lint checks their pattern",
        "nodes of a: number unknown; the twin has 2000",
        "cores of a node of a: from the cores per GPU; the twin has 400",
        "GPUs of a node of b: unknown; the twin has 64",
        "memory of a node of a: unknown; not limited",
        "time limit of b: unknown; not limited by the partition",
        "limits of qos y: unknown; not limited",
        "qos: the site has more than the profile lists; the twin refuses the others",
    )


SHIPPED = sorted(path.stem for path in profile_folder().glob("*.yaml"))


@pytest.mark.parametrize("name", SHIPPED)
def test_a_twin_has_only_the_partitions_that_the_profile_names(name: str) -> None:
    """One that names none has the partition of the sample jobs, and says so."""
    site = load_site(name).value
    if site.scheduler != "slurm":
        return
    selected = {one.select.partition or "unnamed" for one in site.partitions if one.select}
    named = {one.name for one in site.partitions if one.name != "*" and not one.select} | selected
    found = re.findall(r"PartitionName=(\S+)", slurm_conf(site, PLACE))
    assert set(found) == (named or {"gpu"})
    said = [one for one in assumptions(site) if one.startswith("partitions: ")]
    others = any(one.name == "*" and not one.select for one in site.partitions)
    assert bool(said) == (others or not named)
    assert ("the twin has one, gpu" in "".join(said)) == (not named)


def test_qualities_of_service(tmp_path: Path) -> None:
    mine = profile(
        tmp_path,
        "account: {example: abc}\n"
        "partitions: [{name: a, select: {qos: x, account_suffix: '@a'}}]\n"
        "qos: [{name: y, max_time: 1h, max_nodes: 2}, {name: z, max_time: 1h, max_nodes: 2},\n"
        "  {name: '*'}]\n",
    )
    assert has_accounting(mine)
    assert [" ".join(words) for words in account_settings(mine, ("root", "me"))] == [
        "add account any",
        "add qos y,z MaxWall=01:00:00 MaxTRESPerJob=node=2 Flags=DenyOnLimit",
        "add qos x",
        "modify cluster mine set qos=normal,y,z,x",
        "add user root,me account=any",
    ]
    assert "AccountingStorageEnforce" in slurm_conf(
        mine, TwinPaths(folder="/t", port=1, dbd_port=2)
    )


@pytest.mark.parametrize(
    ("pattern", "account"),
    [
        ("project_[0-9]+", "project_1"),
        ("(def|rrg|aip)-.+", "def-x"),
        (".+-delta-(gpu|cpu)", "x-delta-gpu"),
        (r"[A-Z]{3}\d{5}", "project"),
        (None, "project"),
    ],
)
def test_an_account_by_its_pattern(pattern: str | None, account: str) -> None:
    assert sample_account(Account(pattern=pattern)) == account
