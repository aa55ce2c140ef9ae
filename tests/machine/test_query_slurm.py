"""What Slurm's commands print -> Cluster."""

import pytest

from hpc_train.base.errors import ProbeError
from hpc_train.base.slurm_options import Gres
from hpc_train.base.values import Duration, Memory
from hpc_train.machine.probe_job import kinds
from hpc_train.slurm.live_cluster import read_cluster
from tests.machine.machines import Slurm


def test_the_lab() -> None:
    found = read_cluster(Slurm("lab"))
    assert (found.name, found.version, found.accounting) == ("lab", "22.05.8", True)
    gpu, long = found.partitions
    assert (gpu.name, gpu.default, gpu.nodes, gpu.max_nodes) == ("gpu", True, 3, None)
    assert (gpu.max_time, gpu.default_time) == (Duration(3600), Duration(300))
    assert (long.default, long.max_time) == (False, None)
    assert [node.name for node in found.nodes] == ["lab1", "lab2", "lab3"]
    assert found.nodes[0].gpus == 4
    assert found.nodes[0].memory == Memory(4000)
    assert found.mpi.plugins == ("pmix", "none", "cray_shasta", "pmi2", "pmix_v4")
    assert found.limits.max_array_size == 1001
    assert found.gres == (Gres(name="gpu", kind="a100", count=12),)


def test_a_cluster_of_several_kinds_of_nodes() -> None:
    found = read_cluster(Slurm("mixed"))
    gpu, cpu = found.partitions
    assert (gpu.shared, gpu.preempt_mode, gpu.grace) == (False, "REQUEUE", Duration(300))
    assert (gpu.max_time, gpu.default_time, gpu.max_nodes) == (Duration(172800), None, 16)
    assert (cpu.shared, cpu.state) == (True, "DOWN")
    assert cpu.allowed_accounts == ("proj_a", "proj_b")
    assert cpu.allowed_qos == ("normal", "long")
    node = found.nodes[0]
    assert (node.cpus, node.all_cpus, node.threads) == (112, 128, 2)
    assert node.features == ("nvme", "gfx90a")
    assert node.partitions == ("gpu",)
    assert node.gres == (Gres(name="gpu", kind="mi250x", count=8),)
    assert [qos.name for qos in found.qos] == ["normal", "long", "secret"]
    normal = found.qos[0]
    assert (normal.max_time, normal.max_nodes) == (Duration(86400), 8)
    assert (normal.max_gpus, normal.max_jobs) == (32, 4)
    assert [one.account for one in found.associations] == ["proj_a", "proj_b"]
    assert found.associations[0].qos == ("long", "normal")


def test_the_time_to_save_before_a_preemption() -> None:
    found = read_cluster(Slurm("mixed"))
    assert found.preemption == (
        "gpu REQUEUE; a job with lifecycle has to save within GraceTime (partition gpu 300 s, QOS "
        "normal 120 s), else KillWait (30 s)"
    )
    lab = read_cluster(Slurm("lab"))
    modes = {one.preempt_mode for one in lab.partitions}
    assert bool(lab.preemption) == bool(modes & {"REQUEUE", "CANCEL"}), modes


def test_kinds_are_found_once_and_a_sample_is_idle() -> None:
    found = kinds(read_cluster(Slurm("mixed")))
    assert [(kind.partition, len(kind.nodes), kind.mixed) for kind in found] == [
        ("gpu", 4, True),
        ("gpu", 2, True),
        ("cpu", 2, False),
    ]
    # gn001 is drained.
    assert found[0].sample.name == "gn002"


def test_a_plugin_without_its_library_is_not_taken() -> None:
    said = "Invalid MPI type 'pmix', --mpi=list for acceptable types"
    assert read_cluster(Slurm("lab", **{"try": said})).mpi.broken == (
        "pmix",
        "cray_shasta",
        "pmi2",
    )
    # A job that is refused for another reason says nothing about the plug-in.
    refused = "allocation failure: Invalid account or account/partition combination specified"
    assert read_cluster(Slurm("lab", **{"try": refused})).mpi.broken == ()


def test_what_is_not_essential_may_be_silent() -> None:
    found = read_cluster(Slurm("mixed", nodes="no answer within 60.0 s", qos="not installed"))
    assert found.nodes == ()
    assert "could not be read: scontrol show node: no answer within 60.0 s" in found.unread
    assert "could not be read: sacctmgr show qos: not installed" in found.unread
    assert "could not be read: srun --mpi=list: not installed" in found.unread


@pytest.mark.parametrize("name", ["config", "partitions"])
def test_what_is_essential_may_not(name: str) -> None:
    with pytest.raises(ProbeError, match="Unable to contact slurm controller"):
        read_cluster(Slurm("lab", **{name: "Unable to contact slurm controller"}))
