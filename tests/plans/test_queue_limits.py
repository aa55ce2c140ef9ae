"""Limits of partitions, bounds and qualities of service: both numbers, both places, what fits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpc_train.base.errors import HpcTrainError, PlanError
from hpc_train.base.values import Sourced
from hpc_train.jobs.job import JobSpec
from hpc_train.jobs.override import parse_setting
from hpc_train.plans.build import make_plan
from hpc_train.plans.shared_allocation import allocate
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import SiteProfile
from tests.jobs.read_files import load_job
from tests.plans.conftest import Jobs, Sites

REFUSED = yaml.safe_load((Path(__file__).parent / "refused_by_queues.yaml").read_bytes())
PROFILE = """\
schema: 1
name: here
description: d
scheduler: slurm
launchers: {default: srun, allowed: [srun, torchrun]}
partitions:
  - name: batch
    default: true
    nodes: 200
    max_time: 12h             # line 10
    bounds:
      - {nodes: "<=91", max_time: 2h}         # line 12
      - {nodes: ">91,<184", max_time: 6h}
      - {nodes: ">=184", max_time: 12h}
    cpus_per_node: 56
    reserved_cpus: 8
    gpus_per_node: 8
  - name: extended
    max_nodes: 64
    max_time: 1d
  - name: debug
    max_nodes: 4
    max_node_minutes: 90      # line 23
    min_time: 5m              # line 24
  - name: wide
    min_nodes: 4              # line 26
    min_gpus: 16              # line 27
  - name: ratio
    cpus_per_gpu: 20          # line 29
    cpu_rule: exact
    gpus_per_node: 4
  - name: capped
    cpus_per_gpu: 10          # line 33
    cpu_rule: max
qos:
  - {name: normal, default: true, max_nodes: 150, partitions: [batch]}   # line 36
  - {name: short, max_time: 30m, partitions: [batch, debug]}             # line 37
  - {name: area, max_node_minutes: 60}                                   # line 38
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sourced[SiteProfile]:
    monkeypatch.chdir(tmp_path)
    Path("here.yaml").write_text(PROFILE)
    return load_site("here.yaml")


@pytest.fixture
def asked(here: Sourced[SiteProfile]) -> Callable[..., Sourced[JobSpec]]:
    def make(*settings: str) -> Sourced[JobSpec]:
        Path("job.yaml").write_text(
            "command: [python, t.py]\nname: j\nresources: {gpus_per_node: 0}\n"
        )
        return load_job(Path("job.yaml"), [parse_setting(text) for text in settings])

    return make


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: " ".join(row["settings"]))
def test_what_the_queue_does_not_take(
    asked: Jobs, here: Sourced[SiteProfile], row: dict[str, Any]
) -> None:
    with pytest.raises(PlanError) as failure:
        make_plan(asked(*row["settings"]), here)
    assert row["said"] in failure.value.message
    assert row["fits"] in failure.value.hint


@pytest.mark.parametrize(
    "settings",
    [
        ("nodes=91", "time=2h", "gpus_per_node=0"),
        ("nodes=92", "time=6h", "gpus_per_node=0"),
        ("partition=debug", "nodes=2", "time=45m"),
        ("partition=wide", "nodes=4", "gpus_per_node=4", "cpus_per_task=1"),
        ("partition=ratio", "gpus_per_node=2", "cpus_per_task=20"),
        ("partition=ratio", "gpus_per_node=2", "cpus_per_task=9", "exclusive=true", "mem=1G"),
        ("partition=capped", "gpus_per_node=1", "cpus_per_task=9"),
    ],
)
def test_what_it_takes(asked: Jobs, here: Sourced[SiteProfile], settings: tuple[str, ...]) -> None:
    assert make_plan(asked(*settings), here).warnings == ()


def test_an_unknown_qos_has_a_neighbour(asked: Jobs, here: Sourced[SiteProfile]) -> None:
    with pytest.raises(HpcTrainError, match="unknown qos of here 'area2'; did you mean 'area'"):
        make_plan(asked("qos=area2"), here)


def test_a_star_takes_any_qos(job: Jobs, slurm: Sites) -> None:
    site = slurm(qos=[{"name": "debug"}, {"name": "*", "max_nodes": 2}])
    assert dict(make_plan(job(qos="mine"), site).directives)["qos"] == "mine"
    with pytest.raises(PlanError, match="nodes = 3, but big qos \\* has at most 2"):
        make_plan(job({"nodes": 3}, qos="mine"), site)
    make_plan(job({"nodes": 3}), site)


def test_a_time_that_nobody_asked_for(job: Jobs, slurm: Sites) -> None:
    site = slurm(partitions=[{"name": "p", "default": True, "default_time": "10m"}])
    plan = make_plan(job(), site)
    assert str(plan.settings["default_time"].value) == "00:10:00"
    assert plan.warnings[0].startswith("no time limit: big p ends the job after 00:10:00")
    assert make_plan(job({"time": "5m"}), site).warnings == ()


def test_an_allocation_of_a_study_keeps_to_the_bounds(job: Jobs, slurm: Sites) -> None:
    bounds = [{"nodes": ">=2", "max_time": "1h"}]
    site = slurm(partitions=[{"name": "p", "default": True, "max_time": "2h", "bounds": bounds}])
    plans = [("a", make_plan(job({"nodes": n, "time": "31m"}), site, nested=True)) for n in (1, 2)]
    with pytest.raises(PlanError, match=r"big p gives a job at most 01:00:00 for >=2 nodes"):
        allocate(site, plans, "s")
    small = [("a", make_plan(job({"nodes": 1, "time": "31m"}), site, nested=True))] * 2
    assert dict(allocate(site, small, "s").directives)["time"] == "01:03:00"


PARTITION = {
    "name": "gpu",
    "default": True,
    "max_nodes": 4,
    "max_time": "1d",
    "gpus_per_node": 4,
    "cpus_per_node": 64,
    "mem_per_node": "480G",
}


def limits(job: Sourced[JobSpec], site: Sourced[SiteProfile]) -> tuple[str, ...]:
    return make_plan(job, site).warnings


@pytest.mark.parametrize(
    ("resources", "keys", "said"),
    [
        ({}, {}, "set resources.mem (a node of big has 480G)"),
        ({}, {"partitions": []}, "set resources.mem"),
        ({"mem": "1G"}, {}, ""),
        ({"exclusive": False}, {}, ""),
        ({}, {"mem_request": "forbidden"}, ""),
        ({}, {"mem_request": "zero"}, ""),
        ({}, {"scheduler": "local"}, ""),
    ],
)
def test_exclusive_gives_no_memory(
    job: Jobs, slurm: Sites, resources: dict[str, Any], keys: dict[str, Any], said: str
) -> None:
    site = slurm(**{"partitions": [PARTITION], **keys})
    warnings = " ".join(limits(job({"exclusive": True, "gpus_per_node": 0, **resources}), site))
    assert ("job.yaml:9: exclusive without mem" in warnings) == bool(said)
    assert warnings.endswith(said)


def test_more_tasks_than_cores_here_is_a_warning_with_both_numbers(
    job: Jobs, local: Sourced[SiteProfile]
) -> None:
    (warning,) = limits(job({"tasks_per_node": 9, "cpus_per_task": 1}), local)
    assert warning.startswith("9 tasks x 1 cpus = 9, but local machine has 8 cores")


def test_all_violated_limits_are_in_one_message(job: Jobs, slurm: Sites) -> None:
    resources = {"nodes": 5, "gpus_per_node": 8, "time": "2d"}
    with pytest.raises(HpcTrainError) as refused:
        limits(job(resources=resources), slurm(partitions=[PARTITION]))
    for part in ("nodes = 5, but", "gpus_per_node = 8, but", "time = 2-00:00:00, but"):
        assert refused.value.message.count(part) == 1


def test_memory_where_it_is_forbidden(job: Jobs, slurm: Sites) -> None:
    with pytest.raises(HpcTrainError, match=r"job\.yaml:9: big forbids a memory request"):
        limits(job({"mem": "4G"}), slurm(mem_request="forbidden"))
