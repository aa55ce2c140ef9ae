"""Which partition a job gets, who said so, and the words that lead there."""

from typing import Any

import pytest

from hpc_train.base.errors import HpcTrainError, PlanError, UnknownNameError
from hpc_train.plans.build import make_plan
from hpc_train.plans.directives import setting_of
from tests.plans.conftest import Jobs, Sites

SIZES = [
    {"name": "small", "max_gpus": 2, "cpus_per_gpu": 1, "max_time": "1d"},
    {"name": "medium", "min_gpus": 3, "max_gpus": 24, "cpus_per_gpu": 1, "max_time": "1d"},
    {"name": "long", "max_nodes": 1, "max_time": "10d", "cpus_per_gpu": 1},
]


@pytest.mark.parametrize(
    ("resources", "chosen"),
    [
        ({"gpus_per_node": 1}, "small"), ({"gpus_per_node": 2}, "small"),
        ({"gpus_per_node": 3}, "medium"), ({"nodes": 2, "gpus_per_node": 2}, "medium"),
        ({"nodes": 6, "gpus_per_node": 4}, "medium"), ({"gpus_per_node": 1, "time": "2d"}, "long"),
    ],
)  # fmt: skip
def test_the_first_partition_that_a_job_fits(
    job: Jobs, slurm: Sites, resources: dict[str, Any], chosen: str
) -> None:
    plan = make_plan(job(resources), slurm(partition_choice="fitting", partitions=SIZES))
    assert dict(plan.directives)["partition"] == chosen
    assert plan.settings["partition"].why == "the first of the site's that the job fits"


def test_a_job_that_fits_nowhere_hears_why_of_each(job: Jobs, slurm: Sites) -> None:
    site = slurm(partition_choice="fitting", partitions=SIZES)
    with pytest.raises(PlanError) as failure:
        make_plan(job({"nodes": 7, "gpus_per_node": 4}), site)
    assert failure.value.message == (
        "job.yaml:1: no partition of big accepts this job: "
        "small: GPUs of all nodes = 28, but small has at most 2 (big.yaml); "
        "medium: GPUs of all nodes = 28, but medium has at most 24 (big.yaml); "
        "long: nodes = 7, but long has at most 1 (big.yaml)"
    )


def test_a_job_without_gpus_goes_to_a_partition_without(job: Jobs, slurm: Sites) -> None:
    sizes = [
        {"name": "gpu", "default": True, "gpus_per_node": 4},
        {"name": "cpu", "gpus_per_node": 0},
    ]
    for gpus, chosen in ((0, "cpu"), (4, "gpu")):
        plan = make_plan(job({"gpus_per_node": gpus}), slurm(partitions=sizes))
        assert dict(plan.directives)["partition"] == chosen


def test_a_named_partition_is_not_chosen_again(job: Jobs, slurm: Sites) -> None:
    site = slurm(partition_choice="fitting", partitions=SIZES)
    plan = make_plan(job({"gpus_per_node": 1}, partition="long"), site)
    assert dict(plan.directives)["partition"] == "long"
    assert plan.settings["partition"].origin == "job.yaml:1"


@pytest.mark.parametrize(
    ("partitions", "allowed"),
    [
        (SIZES, "allowed: small, medium, long"),
        ([{"name": "*"}], "allowed: your cluster's own name for one (see sinfo)"),
        (
            [*SIZES, {"name": "*"}],
            "allowed: small, medium, long, or your cluster's own name for one (see sinfo)",
        ),
        ([], "allowed: your cluster's own name for one (see sinfo)"),
    ],
)
def test_a_site_without_a_default_asks(
    job: Jobs, slurm: Sites, partitions: list[Any], allowed: str
) -> None:
    site = slurm(partition_choice="job", partitions=partitions)
    with pytest.raises(PlanError) as failure:
        make_plan(job(), site)
    why = f"a partition: there is no default (big.yaml); {allowed}"
    assert failure.value.message == f"job.yaml: big needs {why}"
    assert "--partition " in failure.value.hint
    assert make_plan(job(partition="small"), site).settings["partition"].value == "small"


def test_the_star_gives_its_facts_to_any_name(job: Jobs, slurm: Sites) -> None:
    star = {"name": "*", "cpus_per_node": 96, "gpus_per_node": 8, "gpu_type": "h100"}
    named = {"name": "cpu", "cpus_per_node": 4}
    site = slurm(partitions=[named, star], gpu_request_typed=True)
    plan = make_plan(job({"gpus_per_node": 8}, partition="mine"), site)
    assert dict(plan.directives)["partition"] == "mine"
    assert dict(plan.directives)["gpus-per-node"] == "h100:8"
    assert plan.topology.cpus_per_task == 12
    with pytest.raises(HpcTrainError, match="gpus_per_node = 9, but big \\* has at most 8"):
        make_plan(job({"gpus_per_node": 9}, partition="mine"), site)
    assert make_plan(job(partition="cpu"), site).topology.cpus_per_task == 4
    unnamed = make_plan(job({"gpus_per_node": 8}), site)
    assert "partition" not in dict(unnamed.directives)
    assert unnamed.topology.cpus_per_task == 12


def test_without_a_star_another_name_is_unknown(job: Jobs, slurm: Sites) -> None:
    with pytest.raises(UnknownNameError, match="unknown partition of big 'mediun'; did you mean"):
        make_plan(job(partition="mediun"), slurm(partitions=SIZES))


SELECT = {"qos": "regular", "constraint": "gpu&hbm80g", "account_suffix": "_g"}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, {"qos": "regular", "constraint": "gpu&hbm80g"}),
        ({"qos": "debug"}, {"qos": "debug", "constraint": "gpu&hbm80g"}),
        ({"account": "m1"}, {"account": "m1_g", "qos": "regular", "constraint": "gpu&hbm80g"}),
        ({"account": "m1_g"}, {"account": "m1_g", "qos": "regular", "constraint": "gpu&hbm80g"}),
        ({"constraint": "x"}, {"qos": "regular", "constraint": "gpu&hbm80g&x"}),
        ({"constraint": "x|y"}, {"qos": "regular", "constraint": "gpu&hbm80g&(x|y)"}),
        ({"constraint": "hbm80g&gpu"}, {"qos": "regular", "constraint": "hbm80g&gpu"}),
    ],
)
def test_the_words_that_lead_to_a_partition(
    job: Jobs, slurm: Sites, keys: dict[str, str], words: dict[str, str]
) -> None:
    site = slurm(partitions=[{"name": "gpu80", "default": True, "select": SELECT}])
    plan = make_plan(job(**keys), site)
    options = dict(plan.directives)
    queue = ("partition", "account", "qos", "constraint")
    assert {key: options[key] for key in queue if key in options} == words
    assert plan.settings["partition"].value == "gpu80"


def test_explain_knows_whose_words_they_are(job: Jobs, slurm: Sites) -> None:
    select = {"partition": "p", "account_suffix": "@a100"}
    site = slurm(partitions=[{"name": "a100", "select": select}])
    plan = make_plan(job(partition="a100", account="m1"), site)
    assert dict(plan.directives)["partition"] == "p"
    assert dict(plan.directives)["account"] == "m1@a100"
    found = [setting_of(option, plan.settings) for option in ("partition", "account")]
    assert [(one.origin, one.why) for one in found] == [
        ("big.yaml", "the option that selects the partition"),
        ("job.yaml:1", "@a100 is the partition's (big.yaml)"),
    ]


@pytest.mark.parametrize("key", ["partition", "qos", "constraint", "account_suffix"])
@pytest.mark.parametrize("value", ["a$(id)", 'a"b', "a'b", "a`b`", "a#b", "a\\b"])
def test_a_word_that_sbatch_would_misread_is_refused(
    job: Jobs, slurm: Sites, key: str, value: str
) -> None:
    site = slurm(partitions=[{"name": "p", "select": {key: value}}])
    with pytest.raises(PlanError, match="cannot be written as an #SBATCH value"):
        make_plan(job(partition="p", account="a"), site)
