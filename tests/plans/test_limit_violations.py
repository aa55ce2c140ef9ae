"""What does not fit is refused with both numbers; what is unwise is a warning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hpc_train.base.errors import HpcTrainError
from hpc_train.base.values import Sourced
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.sites.profile import SiteProfile

Jobs = Callable[..., Sourced[JobSpec]]
Sites = Callable[..., Sourced[SiteProfile]]
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
        ({}, {}, "name resources.mem (a node of big has 480G)"),
        ({}, {"partitions": []}, "name resources.mem"),
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


def test_a_site_that_lists_no_partitions_refuses_none(job: Jobs, slurm: Sites) -> None:
    assert limits(job({"nodes": 500}, partition="any"), slurm()) == ()


def test_memory_where_it_is_forbidden(job: Jobs, slurm: Sites) -> None:
    with pytest.raises(HpcTrainError, match=r"job\.yaml:9: big forbids a memory request"):
        limits(job({"mem": "4G"}), slurm(mem_request="forbidden"))


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
