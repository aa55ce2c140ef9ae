"""A cluster and its nodes -> a draft that loads and says what it guessed."""

from pathlib import Path

import pytest

from hpc_train.base.values import Duration, Memory
from hpc_train.jobs.override import Override
from hpc_train.machine.draft_profile import draft_slurm
from hpc_train.machine.probe_job import kinds, shape
from hpc_train.machine.read_hardware import read_hardware
from hpc_train.scripts.prepare import Request, prepare
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import SiteProfile
from hpc_train.slurm.live_cluster import Cluster, read_cluster
from tests.machine.machines import SHAPES, Slurm, output


def draft(cluster: str, *machines: str) -> str:
    return draft_of(read_cluster(Slurm(cluster)), *machines)


def draft_of(live: Cluster, *machines: str) -> str:
    hardware = {
        shape(kind.nodes[0]): read_hardware(output(name))
        for kind, name in zip(kinds(live), machines, strict=False)
    }
    return draft_slurm("draft", "2026-08-01", live, hardware)


def loaded(content: str, folder: Path) -> SiteProfile:
    path = folder / "draft.yaml"
    path.write_text(content)
    return load_site(str(path)).value


def test_the_lab_by_its_slurm_alone(tmp_path: Path) -> None:
    content = draft("lab")
    site = loaded(content, tmp_path)
    gpu, long = site.partitions
    assert (gpu.name, gpu.default, gpu.nodes, gpu.gpu_type) == ("gpu", True, 3, "a100")
    assert (gpu.gpus_per_node, gpu.cpus_per_node, gpu.mem_per_node) == (4, 8, Memory(4000))
    assert (gpu.max_time, long.max_time) == (Duration(3600), None)
    assert site.gpu_request == "gpus-per-node"
    assert (site.slurm, site.verified_on) == ("22.05.8", "2026-08-01")
    assert site.detect is not None and site.detect.clusters == ("lab",)
    assert site.limits.max_array_size == 1001
    # Each srun has them.
    assert site.launchers.srun_args == ()
    assert site.network is None
    assert (
        "# network: {fabric: infiniband, interfaces: [ib0]}  # which network connects the nodes?"
        in content
    )
    assert all("# guessed" in row for row in content.splitlines() if row.startswith("gpu_request"))


def test_a_mixed_cluster_with_its_nodes(tmp_path: Path) -> None:
    content = draft("mixed", "mi250x", "dgx_a100")
    site = loaded(content, tmp_path)
    gpu, cpu = site.partitions
    assert site.partition_choice == "job"
    assert (gpu.gpus_per_node, gpu.gpu_type) == (8, "mi250x")
    assert gpu.gpu_order == (4, 5, 2, 3, 6, 7, 0, 1)
    assert (gpu.reserved_cpus, gpu.threads_per_core, gpu.shared) == (16, 2, False)
    assert (cpu.gpus_per_node, cpu.max_time, cpu.max_nodes) == (0, None, 2)
    assert "# 2 nodes like gm1 differ: 112 CPUs; 1000G; 7 1g.10gb, 3 h100" in content
    assert "# its state was DOWN" in content
    assert site.network is not None and site.network.fabric == "slingshot"
    assert site.network.gpus == "amd"
    assert (gpu.nics_per_node, gpu.nic_gbps) == (4, 200)
    # `secret` is nobody's of this user; `long` is refused in no partition.
    assert [(qos.name, qos.default, qos.partitions) for qos in site.qos] == [
        ("normal", True, ()),
        ("long", False, ()),
    ]
    assert site.limits.max_submit_jobs == 40
    assert site.lifecycle is not None and site.lifecycle.requeue is False


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("cluster", ["lab", "mixed"])
def test_a_job_renders_for_each_draft(cluster: str, shape: str, tmp_path: Path) -> None:
    path = tmp_path / "draft.yaml"
    path.write_text(draft(cluster, shape))
    keys = {"partition": "gpu", "resources.gpus_per_node": 4}
    chosen = tuple(Override(key=key, value=one, origin="test") for key, one in keys.items())
    ready = prepare(Request(path=Path("train.py"), site=str(path), overrides=chosen))
    assert "#SBATCH --partition=gpu" in ready.points[0].script.text


def test_the_default_of_the_cluster_is_stated_and_others_are_a_question(tmp_path: Path) -> None:
    """MpiDefault is none on the cluster `lab`, which has pmix, and pmi2 on `mixed`."""
    content = draft("lab")
    assert loaded(content, tmp_path).launchers.mpi is None
    asked = next(row for row in content.splitlines() if row.startswith("  # mpi: pmix"))
    assert asked.endswith("MpiDefault is none: which one do ranks of MPI need?")
    content = draft("mixed")
    assert loaded(content, tmp_path).launchers.mpi == "pmi2"
    assert "guessed" not in next(row for row in content.splitlines() if row.startswith("  mpi:"))


@pytest.mark.parametrize(
    ("silent", "keys"),
    [
        ({"mpi": "no srun"}, {"mpi"}),
        ({"nodes": "timeout"}, {"gpu_request", "gpus_per_node", "cpus_per_node", "arch"}),
        ({"qos": "x", "associations": "x"}, {"qos", "max_submit_jobs"}),
    ],
)
@pytest.mark.parametrize("cluster", ["lab", "mixed"])
def test_nothing_is_stated_that_slurm_did_not_answer(
    cluster: str, silent: dict[str, str], keys: set[str], tmp_path: Path
) -> None:
    """MpiDefault is an answer of scontrol, so that `mixed` states it without srun's list."""
    content = draft_of(read_cluster(Slurm(cluster, **silent)))
    assert loaded(content, tmp_path).name == "draft"
    stated = {row.strip().removeprefix("- ").split(":")[0] for row in content.splitlines()}
    assert not stated & (keys - ({"mpi"} if cluster == "mixed" else set()))
