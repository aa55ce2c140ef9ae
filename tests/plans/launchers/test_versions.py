"""argv by version of torch and of Open MPI, and what is left out where it is not there."""

import pytest

from hpc_train.jobs.job import Elastic
from hpc_train.plans.launchers.agents import torchrun
from hpc_train.plans.launchers.mpi import mpirun
from hpc_train.plans.plan import Binding, Launch
from tests.plans.launchers.made import line, request, words

ELASTIC = Elastic(min_nodes=1, max_nodes=2, max_restarts=3)


def agent(launch: Launch) -> str:
    assert launch.agent
    return line(launch.agent)


def test_an_elastic_job_meets_by_c10d_and_says_who_is_host() -> None:
    launch = torchrun(request(elastic=ELASTIC))
    assert agent(launch) == (
        "python -m torch.distributed.run --nnodes 1:2 --nproc-per-node 2 --max-restarts 3 "
        "--rdzv-backend c10d --rdzv-endpoint $MASTER_ADDR:$MASTER_PORT "
        "--rdzv-id $SLURM_JOB_ID.$restarts --rdzv-conf is_host=$is_host "
        "--local-addr $node_address --no-python"
    )
    assert words(launch) == (
        "srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=6 "
        "--cpu-bind=none --no-kill --kill-on-bad-exit=0 --wait=0 bash -c $node_wrapper node "
        "bash -c $rank_wrapper rank python t.py"
    )


def test_all_nodes_or_none_lets_srun_end_the_step() -> None:
    elastic = Elastic(min_nodes=2, max_nodes=2, max_restarts=1)
    assert "--no-kill" not in words(torchrun(request(elastic=elastic)))


@pytest.mark.parametrize("scheduler", ["local", "slurm"])
def test_one_node_restarts_its_ranks_without_c10d(scheduler: str) -> None:
    elastic = Elastic(min_nodes=1, max_nodes=1, max_restarts=4)
    text = words(torchrun(request(scheduler, nodes=1, elastic=elastic)))
    assert "--master-port $MASTER_PORT --max-restarts 4 --no-python" in text
    assert "c10d" not in text


@pytest.mark.parametrize(
    ("torch", "expected"),
    [(None, ""), ("2.8.1", ""), ("2.9", "--numa-binding node "), ("2.13.0+cu130", "--numa-bi")],
)
def test_numa_binding_from_the_torch_that_has_it(torch: str | None, expected: str) -> None:
    text = words(torchrun(request(torch=torch, binding=Binding(numa="node"))))
    assert ("--numa-binding" in text) == bool(expected)
    assert expected in text


def test_options_of_the_job_stand_before_the_program() -> None:
    args = ("--log-dir", "a b")
    assert "--log-dir a b --no-python bash" in words(torchrun(request(args=args)))
    assert "-x OMP_NUM_THREADS --mca x y --tag bash" in words(
        mpirun(request(mpirun_args=("--mca", "x", "y"), args=("--tag",)))
    )


@pytest.mark.parametrize(
    ("release", "bind", "expected"),
    [
        (None, "none", "--map-by ppr:2:node --bind-to none -x"),
        ("4.1", "core", "--map-by ppr:2:node:PE=3 --bind-to core -x"),
        ("5", "core", "--map-by ppr:2:node:PE=3 --bind-to core -x"),
        (None, "package", "--map-by ppr:2:node --bind-to socket -x"),
        ("4.1.6", "package", "--bind-to socket -x"),
        ("5.0.8", "socket", "--bind-to package -x"),
        ("5", "numa", "--map-by ppr:2:node --bind-to numa -x"),
    ],
)
def test_mpirun_spells_the_binding_as_its_version(
    release: str | None, bind: str, expected: str
) -> None:
    launch = mpirun(request(openmpi=release, binding=Binding(mpirun=bind)))
    assert expected in words(launch)


def test_mpirun_never_chooses_a_network() -> None:
    text = words(mpirun(request(openmpi="5", exported=("NCCL_DEBUG",))))
    assert not any(word in text for word in ("btl", "pml", "tcp", "eth0", "UCX"))
    assert text.count("-x ") == 6
