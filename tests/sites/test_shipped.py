"""The profiles that come with hpctrain: what they say, and on what each value rests."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpc_train.assets import profile_folder
from hpc_train.model.site import SiteProfile
from hpc_train.model.value import Sourced, encode_unit
from hpc_train.sites.lineage import lineage
from hpc_train.sites.load import load_site
from hpc_train.sites.locks import find
from hpc_train.sites.overlay import Part
from hpc_train.sites.provenance import source_of, strays

FOLDER = profile_folder()
PROFILES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
FILES = sorted(FOLDER.rglob("*.yaml"))
# What a file says of itself rests on nothing.
OWN = {"schema", "name", "extends", "description", "operator", "url", "verified_on", "confidence"}
NAMES = """
    aws-parallelcluster azure-cyclecloud clariden coreweave delta fir frontier gcp-a3-high
    gcp-a3-mega gcp-a3-ultra gcp-a4 isambard-ai jean-zay juwels-booster leonardo local lonestar6
    lumi-g mahti marenostrum5 narval nebius oci perlmutter roihu rorqual sagemaker-hyperpod
    slurm-generic snellius vista
""".split()
NO_MPIRUN = ["srun", "torchrun", "accelerate", "deepspeed", "spawn", "single"]
FACTS: tuple[tuple[str, str, Any], ...] = (
    ("perlmutter", "partitions.gpu.select", {"constraint": "gpu", "qos": "regular"}),
    ("perlmutter", "partitions.gpu-hbm80g.select.constraint", "gpu&hbm80g"),
    ("perlmutter", "partitions.gpu-hbm80g.nodes", 256),
    ("perlmutter", "partitions.gpu.gpu_order", [3, 2, 1, 0]),
    ("perlmutter", "launchers.gpu_bind", "none"),
    ("perlmutter", "rendezvous.host", "batch-host"),
    ("perlmutter", "storage.scratch.purge", "56-00:00:00"),
    ("frontier", "account.required", True),
    ("frontier", "partitions.batch.default", True),
    (
        "frontier",
        "partitions.batch.bounds",
        [
            {"nodes": "<=91", "max_time": "02:00:00"},
            {"nodes": ">=92,<=183", "max_time": "06:00:00"},
            {"nodes": ">=184", "max_time": "12:00:00"},
        ],
    ),
    ("frontier", "partitions.extended.max_nodes", 64),
    ("frontier", "launchers.allowed", NO_MPIRUN),
    ("frontier", "qos.*", {"name": "*", "default": False}),
    ("frontier", "partitions.batch.cpus_per_node", 56),
    ("frontier", "partitions.batch.reserved_cpus", 8),
    ("frontier", "launchers.default", "srun"),
    ("frontier", "rendezvous.host", "hostname-ip"),
    ("frontier", "network.gpus", "amd"),
    ("frontier", "lifecycle.signal_lead", "00:05:00"),
    ("frontier", "internet.env.https_proxy", "http://proxy.ccs.ornl.gov:3128/"),
    ("frontier", "storage.nvme.request", {"constraint": "nvme"}),
    ("lumi-g", "partitions.standard-g.max_time", "2-00:00:00"),
    ("lumi-g", "partitions.standard-g.max_nodes", 1024),
    ("lumi-g", "partitions.small-g.max_time", "3-00:00:00"),
    ("lumi-g", "partitions.small-g.shared", True),
    ("lumi-g", "partitions.dev-g.max_nodes", 32),
    ("lumi-g", "partitions.dev-g.mem_per_gpu", "60G"),
    ("lumi-g", "partitions.bench.gpus_per_node", 8),
    ("lumi-g", "partitions.bench.cpus_per_node", 56),
    ("lumi-g", "launchers.allowed", NO_MPIRUN),
    ("lumi-g", "rendezvous.port", 10000),
    ("lumi-g", "rendezvous.ports", 10000),
    ("clariden", "launchers.allowed", NO_MPIRUN),
    ("clariden", "env_blocks.3.already_set_by", "hook com.hooks.aws_ofi_nccl"),
    ("clariden", "env_blocks.3.when", {"nodes": ">1", "runtime": "nccl", "container": True}),
    ("clariden", "partitions.debug.max_node_minutes", 90),
    ("clariden", "partitions.normal.max_time", "12:00:00"),
    ("clariden", "gpu_request", "gpus-per-task"),
    ("clariden", "containers.runtime", "edf"),
    ("clariden", "storage.scratch.purge", "14-00:00:00"),
    ("isambard-ai", "gpu_request", "gpus"),
    ("isambard-ai", "poll", "00:01:00"),
    ("isambard-ai", "partitions.gpu.select", {}),
    ("isambard-ai", "network.interfaces", []),
    ("delta", "rendezvous.host", "hostname-ip"),
    ("delta", "gpu_request_typed", False),
    ("delta", "partitions.gpuMI100x8.gpu_type", "mi100"),
    ("delta", "partitions.gpuA40x4-preempt.preemption.safe", "00:10:00"),
    ("delta", "partitions.gpuA100x4-preempt.preemption.grace", "00:05:00"),
    ("delta", "partitions.*.gpus_per_node", None),
    ("delta", "lifecycle.requeue", False),
    ("delta", "partitions.gpuH200x8-interactive.max_time", "01:00:00"),
    ("delta", "partitions.gpuA40x4.gpu_order", [3, 2, 1, 0]),
    ("juwels-booster", "step_manager", "psid"),
    ("juwels-booster", "rendezvous.suffix", "i"),
    ("juwels-booster", "network.interfaces", ["ib0"]),
    ("juwels-booster", "directives.hint", "nomultithread"),
    ("leonardo", "partitions.boost_usr_prod.cpus_per_gpu", 8),
    ("leonardo", "qos.boost_qos_dbg.max_time", "00:30:00"),
    ("marenostrum5", "mem_request", "forbidden"),
    ("marenostrum5", "partitions.acc.cpu_rule", "exact"),
    ("marenostrum5", "partitions.acc.default", True),
    ("marenostrum5", "required", ["account", "qos"]),
    ("jean-zay", "partitions.a100.select", {"account_suffix": "@a100", "constraint": "a100"}),
    ("jean-zay", "account.required", True),
    ("jean-zay", "partitions.a100.description", "gpu_p5"),
    ("jean-zay", "partitions.h100.description", "gpu_p6"),
    ("jean-zay", "partitions.gpu_p2.cpus_per_gpu", 3),
    ("jean-zay", "partitions.h100.modules", ["arch/h100"]),
    ("jean-zay", "partitions.v100.default_time", "00:10:00"),
    ("jean-zay", "qos.qos_gpu-t4.max_time", "4-04:00:00"),
    ("snellius", "partitions.gpu_h100.mem_per_node", "720G"),
    ("snellius", "rendezvous.port", 10000),
    ("snellius", "rendezvous.ports", 10000),
    ("snellius", "partitions.gpu_a100.max_time", "5-00:00:00"),
    ("vista", "arch", "aarch64"),
    ("vista", "launchers.default", "ibrun"),
    ("vista", "partitions.gh-dev.max_nodes", 8),
    ("lonestar6", "partitions.gpu-a100.gpus_per_node", 3),
    ("lonestar6", "required", ["partition", "time"]),
    ("roihu", "partition_choice", "fitting"),
    ("roihu", "partitions.gpumedium.mem_per_gpu", "217G"),
    ("mahti", "partitions.gpumedium.min_gpus", 3),
    ("mahti", "partitions.gpusmall.max_gpus", 2),
    ("narval", "partitions.gpu.cpus_per_gpu", 12),
    ("narval", "detect.env", {"CC_CLUSTER": "narval"}),
    ("rorqual", "internet.access", "no"),
    ("rorqual", "partitions.gpu.max_time", "7-00:00:00"),
    ("fir", "internet.access", "yes"),
    ("fir", "limits.max_submit_jobs", 1000),
    ("aws-parallelcluster", "containers", {"runtime": "pyxis", "mpi": "pmix"}),
    ("aws-parallelcluster", "network.exclude_interfaces", ["docker", "lo", "veth"]),
    ("sagemaker-hyperpod", "gpu_request", "none"),
    ("azure-cyclecloud", "env.NCCL_TOPO_FILE", "/opt/microsoft/ndv5-topo.xml"),
    ("azure-cyclecloud", "mem_request", "zero"),
    ("azure-cyclecloud", "launchers.mpirun_args", ["--mca", "coll", "^hcoll"]),
    ("azure-cyclecloud", "env_blocks.0.env", {"UCX_TLS": "rc", "UCX_NET_DEVICES": "mlx5_ib0:1"}),
    ("gcp-a3-high", "launchers.mpi", "pmi2"),
    ("gcp-a3-high", "network.fabric", "gcp-tcpx"),
    ("gcp-a3-high", "network.interfaces", ["enp0s12"]),
    (
        "gcp-a3-high",
        "env_blocks.0.env.NCCL_GPUDIRECTTCPX_SOCKET_IFNAME",
        "enp6s0,enp12s0,enp134s0,enp140s0",
    ),
    ("gcp-a3-mega", "network.script", "/var/lib/tcpxo/lib64/nccl-env-profile.sh"),
    ("gcp-a3-mega", "env_blocks.0.env.NCCL_SOCKET_IFNAME", "enp0s12"),
    ("gcp-a4", "network.script", "/usr/local/gib/scripts/set_nccl_env.sh"),
    ("oci", "launchers.mpi", "pmix_v3"),
    ("oci", "launchers.mpirun_args", ["--mca", "coll", "^hcoll"]),
    ("oci", "env_blocks.1.env", {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "eth0"}),
    ("coreweave", "directives.distribution", "block:block"),
    ("coreweave", "launchers.mpirun_args", ["--mca", "coll", "^hcoll"]),
    ("coreweave", "env_blocks.1.env", {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "eth0"}),
    ("nebius", "partitions.*.cpus_per_gpu", 16),
)
# A site, a launcher or sbatch option, and a word of what the profile says of it.
WARNINGS = (
    ("frontier", "launchers.warned.torchrun", "10 times slower"),
    *(
        ("frontier", f"launchers.warned.{one}", "binding of one task")
        for one in ("accelerate", "deepspeed", "spawn")
    ),
    ("isambard-ai", "launchers.forbidden.mpirun", "not allowed"),
    ("roihu", "launchers.forbidden.mpirun", "srun"),
    ("vista", "forbidden.gres", "partition gives"),
    ("vista", "forbidden.mem", "memory"),
    ("clariden", "forbidden.gres", "gpus-per-task"),
    ("sagemaker-hyperpod", "forbidden.gpus-per-node", "no GRES"),
)


@lru_cache
def loaded(name: str) -> Sourced[SiteProfile]:
    return load_site(str(FOLDER / f"{name}.yaml"))


def said(name: str, key: str) -> Any:
    """Return the value of a key whose lists are addressed by name."""
    site = loaded(name)
    plain = msgspec.json.decode(msgspec.json.encode(site.value, enc_hook=encode_unit))
    return find(Part(plain, site.origins), key)[0]


def written(value: Any) -> Any:
    """Return a value without what is unknown."""
    if isinstance(value, dict):
        known = {key: written(item) for key, item in value.items()}
        return {key: item for key, item in known.items() if item not in (None, [], {})}
    return [written(item) for item in value] if isinstance(value, list) else value


def test_these_are_shipped() -> None:
    assert sorted(NAMES) == PROFILES


@pytest.mark.parametrize(("name", "key", "value"), FACTS)
def test_a_fact(name: str, key: str, value: Any) -> None:
    assert written(said(name, key)) == value


@pytest.mark.parametrize(("name", "key", "word"), WARNINGS)
def test_what_a_site_refuses_has_its_reason(name: str, key: str, word: str) -> None:
    assert word in said(name, key)


@pytest.mark.parametrize(
    ("name", "word"),
    [("narval", "a100"), ("rorqual", "h100"), ("roihu", "gh200"), ("mahti", "a100")],
)
def test_gpus_are_asked_for_by_type(name: str, word: str) -> None:
    assert said(name, "gpu_request_typed") is True
    types = {partition.gpu_type for partition in loaded(name).value.partitions}
    assert types == {word}


def test_lumi_binds_each_rank_to_the_cores_beside_its_gpu() -> None:
    word = said("lumi-g", "partitions.standard-g.cpu_bind")
    masks = [int(mask, 16) for mask in word.removeprefix("mask_cpu:").split(",")]
    first = [(mask & -mask).bit_length() - 1 for mask in masks]
    assert first == [49, 57, 17, 25, 1, 9, 33, 41]
    assert {bin(mask).count("1") for mask in masks} == {7}


def test_azure_binds_pairs_of_ranks_to_24_cores() -> None:
    word = said("azure-cyclecloud", "partitions.*.cpu_bind")
    masks = [int(mask, 16) for mask in word.removeprefix("mask_cpu:").split(",")]
    assert masks == [0xFFFFFF << first for first in (24, 24, 0, 0, 72, 72, 48, 48)]


@pytest.mark.parametrize("name", ["gcp-a3-mega", "oci", "coreweave", "nebius", "azure-cyclecloud"])
def test_the_partitions_of_a_cloud_are_its_users(name: str) -> None:
    assert [one.name for one in loaded(name).value.partitions] == ["*"]
    assert said(name, "partition_choice") == "job"


@pytest.mark.parametrize(
    "name", ["clariden", "delta", "juwels-booster", "leonardo", "lumi-g", "snellius"]
)
def test_a_job_without_a_partition_does_not_escape_the_facts(name: str) -> None:
    assert said(name, "partition_choice") == "job"


@pytest.mark.parametrize("name", ["frontier", "jean-zay", "leonardo", "marenostrum5", "perlmutter"])
def test_a_list_that_may_not_be_whole_lets_others_pass(name: str) -> None:
    assert loaded(name).value.qos[-1].name == "*"


@pytest.mark.parametrize("key", ["launchers.allowed", "launchers.default", "rendezvous.port"])
def test_what_hpctrain_chose_is_not_said_to_be_slurms(key: str) -> None:
    source = source_of(loaded("slurm-generic"), key)
    assert source is not None
    assert source.what.startswith("hpctrain")


def test_what_nccl_conf_has_is_not_set_again() -> None:
    block = loaded("oci").value.env_blocks[0]
    assert block.already_set_by == "/etc/nccl.conf"
    assert (block.env["NCCL_IB_TC"], block.env["NCCL_IB_TIMEOUT"]) == ("41", "22")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.stem))
def test_every_file_has_sources_that_cover_something(path: Path) -> None:
    own = lineage(path)[0].part.values
    assert own["sources"], "a shipped profile names its sources"
    assert list(strays(path)) == []


@pytest.mark.parametrize("name", PROFILES)
def test_every_value_rests_on_a_source(name: str) -> None:
    site = loaded(name)
    keys = [key for key in site.origins if key and key.partition(".")[0] not in {*OWN, "sources"}]
    assert len(keys) > 3
    measured = [key for key in keys if site.origins[key] == "this machine"]
    assert [key for key in keys if source_of(site, key) is None] == measured


@pytest.mark.parametrize("name", PROFILES)
def test_no_account_is_made_up(name: str) -> None:
    assert loaded(name).value.account.example is None
