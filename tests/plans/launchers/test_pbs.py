"""argv in a job of PBS: ranks by PALS and Open MPI, and one process on each node."""

from __future__ import annotations

from hpc_train.model.plan import Binding, FirstOf
from hpc_train.plans.launchers import mpiexec, mpirun, pbs_nodes
from tests.plans.launchers.made import line, request, words


def test_pals_gives_each_rank_its_cores() -> None:
    launch = mpiexec.command(request("pbs", args=("--label",)))
    assert words(launch) == (
        "mpiexec -n 4 --ppn 2 --depth=3 --cpu-bind depth --label bash -c $rank_wrapper rank "
        "python t.py"
    )
    names = dict(launch.rank_env)
    assert names["RANK"] == FirstOf(names=("PALS_RANKID", "PMI_RANK"))
    assert names["LOCAL_RANK"] == FirstOf(names=("PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"))


def test_the_binding_of_the_site_takes_precedence() -> None:
    binding = Binding(cpus="list:24-31:16-23")
    text = words(mpiexec.command(request("pbs", binding=binding)))
    assert "--ppn 2 --cpu-bind list:24-31:16-23 bash" in text


def test_open_mpi_reads_the_nodes_from_the_file_of_pbs() -> None:
    text = words(mpirun.command(request("pbs")))
    assert text.startswith("mpirun -np 4 --hostfile $PBS_NODEFILE --map-by ppr:2:node --bind-to ")


def test_a_process_on_each_node() -> None:
    asked = request("pbs", mpirun_args=("--tag-output",))
    assert line(pbs_nodes.by_tmrsh(asked)) == "bash -c $each_node each_node"
    assert line(pbs_nodes.by_pals(asked)) == "mpiexec -n 2 --ppn 1 --cpu-bind none"
    found = line(pbs_nodes.by_openmpi(asked))
    assert found.startswith("mpirun -np 2 --hostfile $PBS_NODEFILE --map-by ppr:1:node --bind-to ")
    assert found.endswith("-x OMP_NUM_THREADS --tag-output")
