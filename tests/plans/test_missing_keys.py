"""What a site requires and a job lacks, in one message; how accounts are named there."""

from typing import Any

import pytest

from hpc_train.base.data_folders import profile_folder
from hpc_train.base.decode import decode
from hpc_train.base.errors import PlanError
from hpc_train.base.values import Sourced
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.plans.context import resolve_context
from hpc_train.plans.missing_keys import missing_keys
from hpc_train.sites.load import load_site
from tests.plans.conftest import Jobs, Sites

SHIPPED = sorted(path.stem for path in profile_folder().glob("*.yaml") if path.stem != "local")
STRICT: dict[str, Any] = {
    "partition_choice": "job",
    "partitions": [{"name": "a", "gpus_per_node": 4}, {"name": "b"}],
    "account": {"required": True, "pattern": "p[0-9]+", "command": "my-accounts"},
    "required": ["time", "qos"],
    "qos": [{"name": "short"}, {"name": "*"}],
}


def with_keys(job: Sourced[JobSpec], keys: dict[str, str]) -> Sourced[JobSpec]:
    """Return the job with values of dotted keys, as a user would write them."""
    data: dict[str, Any] = {"name": "j", "command": ["python", "t.py"]}
    data["resources"] = {"nodes": job.value.resources.nodes}
    for key, text in keys.items():
        first, _, rest = key.partition(".")
        value: Any = int(text) if text.isdecimal() else text
        if rest:
            data[first][rest] = value
        else:
            data[first] = value
    return decode(data, JobSpec, {"": "job.yaml"}, PlanError)


def test_all_are_named_at_once(job: Jobs, slurm: Sites) -> None:
    with pytest.raises(PlanError) as failure:
        make_plan(job(), slurm(**STRICT))
    first, *rows = failure.value.message.splitlines()
    assert first == "job.yaml: big needs 5 more keys:"
    assert [row.split("#")[0].strip() for row in rows] == [
        "partition: a",
        "account: p1",
        "qos: short",
        "resources.time: 1h",
        "resources.gpus_per_node: 4",
    ]
    assert "yours: my-accounts" in rows[1]
    assert "allowed: a, b" in rows[0]
    hint = failure.value.hint
    assert "--partition a --account p1 --qos short --time 1h" in hint
    assert hint.endswith("hpctrain site show big.yaml --job")


def test_one_is_a_sentence(job: Jobs, slurm: Sites) -> None:
    given = job({"time": "1h", "gpus_per_node": 0}, account="p7", qos="short")
    with pytest.raises(PlanError, match=r"^job\.yaml: big needs a partition: there is no default"):
        make_plan(given, slurm(**STRICT))


def test_a_key_that_the_partition_brings_is_not_missing(job: Jobs, slurm: Sites) -> None:
    partitions = [{"name": "a", "select": {"qos": "q"}}, {"name": "b"}]
    site = slurm(partition_choice="job", required=["qos"], partitions=partitions)
    keys = [one.key for one in missing_keys(resolve_context(job(), site))]
    assert keys == ["partition"]
    keys = [one.key for one in missing_keys(resolve_context(job(partition="b"), site))]
    assert keys == ["qos"]


def test_one_core_for_a_gpu_is_warned_of(job: Jobs, slurm: Sites) -> None:
    site = slurm(partitions=[])
    (said,) = make_plan(job({"gpus_per_node": 2}), site).warnings
    assert said.startswith("1 core for each rank") and "--cpus-per-task 8" in said
    assert make_plan(job({"gpus_per_node": 2, "cpus_per_task": 1}), site).warnings == ()
    whole = make_plan(job({"gpus_per_node": 2, "exclusive": True, "mem": "1G"}), site)
    assert whole.topology.cpus_per_task is None
    assert make_plan(job({"nodes": 2}), site).warnings == ()


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("gpus", [None, 1])
def test_what_a_shipped_site_asks_for_is_all_that_it_needs(
    job: Jobs, name: str, gpus: int | None
) -> None:
    """The examples of one refusal make a job of two nodes complete."""
    site = load_site(name)
    # A flat request of PBS is for whole nodes, or for one.
    flat = site.value.pbs is not None and site.value.pbs.shape == "flat"
    nodes = 1 if flat and gpus else 2
    keys = {} if gpus is None else {"resources.gpus_per_node": str(gpus)}
    given = with_keys(job({"nodes": nodes}), keys)
    missing = missing_keys(resolve_context(given, site))
    complete = with_keys(given, keys | {one.key: one.example for one in missing})
    assert make_plan(complete, site).topology.nodes == nodes
    if missing:
        with pytest.raises(PlanError, match=f"{name} needs"):
            make_plan(given, site)


@pytest.mark.parametrize("key", ["partition", "account", "qos", "time", "mem", "constraint"])
def test_what_a_job_must_say(job: Jobs, slurm: Sites, key: str) -> None:
    full = f"resources.{key}" if key in ("time", "mem") else key
    word: Any = {"time": "1h", "mem": "1G"}.get(key, "x")
    # The text of an error is the message and, in the next line, what to do.
    wrong = rf"^job\.yaml.*: big needs an? {key} \(big\.yaml\)(?:\n|$)"
    with pytest.raises(PlanError, match=wrong) as no:
        make_plan(job(), slurm(required=[key]))
    assert f"--{key} " in no.value.hint
    given = job({key: word}) if full != key else job(**{key: word})
    make_plan(given, slurm(required=[key]))


def test_accounts_have_a_form(job: Jobs, slurm: Sites) -> None:
    account = {
        "required": True,
        "pattern": r"project_\d+",
        "example": "project_462000000",
        "command": "csc-projects",
    }
    site = slurm(account=account)
    with pytest.raises(PlanError, match="big needs an account, such as project_462000000") as none:
        make_plan(job(), site)
    assert "yours: csc-projects" in none.value.hint
    with pytest.raises(PlanError, match=r"^job\.yaml:1: account = 'x', but big's are named like"):
        make_plan(job(account="x"), site)
    with pytest.raises(PlanError, match="are named like"):
        make_plan(job(account="project_1x"), site)
    assert dict(make_plan(job(account="project_1"), site).directives)["account"] == "project_1"


def test_the_memory_of_the_gpus_is_a_memory_request(job: Jobs, slurm: Sites) -> None:
    partition = {"name": "*", "cpus_per_gpu": 1, "mem_per_gpu": "10G"}
    site = slurm(required=["mem"], mem_request="per-gpu", partitions=[partition])
    assert missing_keys(resolve_context(job({"gpus_per_node": 2}), site)) == ()
    keys = [one.key for one in missing_keys(resolve_context(job(), site))]
    assert keys == ["resources.mem"]


@pytest.mark.parametrize(("form", "more"), [("gres", ["resources.gpus_per_node"]), ("none", [])])
def test_gpus_are_named_beside_others_where_slurm_counts_them(
    job: Jobs, slurm: Sites, form: str, more: list[str]
) -> None:
    partitions = [{"name": "a", "default": True, "gpus_per_node": 4, "cpus_per_gpu": 1}]
    site = slurm(gpu_request=form, partitions=partitions, required=["time"])
    keys = [one.key for one in missing_keys(resolve_context(job(), site))]
    assert keys == ["resources.time", *more]


def test_the_example_of_gpus_fits_the_partition(job: Jobs, slurm: Sites) -> None:
    site = slurm(partitions=[{"name": "a", "gpus_per_node": 4, "max_gpus": 4, "cpus_per_gpu": 1}])
    (gpus,) = missing_keys(resolve_context(job({"nodes": 2}, partition="a"), site))
    assert (gpus.key, gpus.example) == ("resources.gpus_per_node", "2")
