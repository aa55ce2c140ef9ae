"""argv of each launcher, on a cluster and here."""

from __future__ import annotations

from hpc_train.model.plan import JobVar
from hpc_train.plans.launchers import mpirun, single, spawn, srun, torchrun
from tests.plans.launchers.made import request, words


def test_srun_states_every_count() -> None:
    launch = srun.command(request(mpi="pmix"))
    assert words(launch) == (
        "srun --nodes=2 --ntasks=4 --ntasks-per-node=2 --cpus-per-task=3 --mpi=pmix "
        "--kill-on-bad-exit=1 --wait=60 bash -c $rank_wrapper rank python t.py"
    )
    assert launch.slots_per_node == 2
    assert ("RANK", JobVar(name="SLURM_PROCID")) in launch.rank_env


def test_torchrun_on_a_cluster_starts_one_agent_per_node() -> None:
    launch = torchrun.command(request())
    assert words(launch) == (
        "srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=6 --kill-on-bad-exit=1 "
        "--wait=60 --cpu-bind=none bash -c $node_wrapper node python "
        "-m torch.distributed.run --nnodes 2 --nproc-per-node 2 --master-addr $MASTER_ADDR "
        "--master-port $MASTER_PORT --no-python bash -c $rank_wrapper rank python t.py"
    )
    assert (launch.slots_per_node, launch.rank_env) == (1, ())


def test_torchrun_here_needs_no_srun_and_uses_the_commands_python() -> None:
    launch = torchrun.command(
        request("local", nodes=1, command=("/opt/venv/bin/python3.11", "t.py"))
    )
    assert words(launch).startswith("/opt/venv/bin/python3.11 -m torch.distributed.run --nnodes 1")
    assert words(torchrun.command(request("local", command=("./a.sh",)))).startswith(
        "torchrun --nn"
    )


def test_mpirun_maps_binds_and_exports_explicitly() -> None:
    text = words(mpirun.command(request()))
    assert text.startswith("mpirun -np 4 --map-by ppr:2:node --bind-to none -x MASTER_ADDR ")
    assert "-x OMP_NUM_THREADS bash -c" in text
    assert "UCX_TLS" not in text


def test_mpirun_here_may_have_more_ranks_than_cores() -> None:
    assert "--host localhost:9 " in words(mpirun.command(request("local", tasks=9, nodes=1)))


def test_spawn_starts_the_program_once_per_node() -> None:
    launch = spawn.command(request())
    assert "--ntasks=2 --ntasks-per-node=1 --cpus-per-task=6" in words(launch)
    assert launch.forks_ranks
    assert "RANK" not in dict(launch.rank_env)
    assert dict(launch.rank_env)["NODE_RANK"] == JobVar(name="SLURM_NODEID")
    assert words(spawn.command(request("local"))) == "bash -c $rank_wrapper rank python t.py"


def test_single_is_one_process() -> None:
    launch = single.command(request("local", tasks=1, nodes=1))
    assert words(launch) == "bash -c $rank_wrapper rank python t.py"
