"""argv of ibrun, accelerate and deepspeed, and srun's binding."""

from __future__ import annotations

import pytest

from hpc_train.errors import PlanError
from hpc_train.model.plan import Binding, FirstOf, JobVar, Text
from hpc_train.plans.launchers import accelerate, deepspeed, ibrun, single, spawn, srun
from tests.plans.launchers.made import line, request, words


def test_ibrun_says_how_many_and_takes_the_rank_of_any_mpi() -> None:
    launch = ibrun.command(request(args=("-v",)))
    assert words(launch) == "ibrun -n 4 -o 0 -v bash -c $rank_wrapper rank python t.py"
    names = dict(launch.rank_env)
    assert isinstance(names["RANK"], FirstOf)
    assert "PMI_RANK" in names["RANK"].names
    assert isinstance(names["LOCAL_RANK"], FirstOf)
    assert dict(ibrun.command(request(tasks=1)).rank_env)["LOCAL_RANK"] == Text(text="0")
    with pytest.raises(PlanError, match="ibrun cannot keep to a part of an allocation"):
        ibrun.command(request(nested=True))


def test_accelerate_starts_one_agent_per_node_with_its_machine_rank() -> None:
    launch = accelerate.command(request())
    assert words(launch) == (
        "srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=6 --kill-on-bad-exit=1 "
        "--wait=60 --cpu-bind=none bash -c $node_wrapper node bash -c "
        "$rank_wrapper rank python t.py"
    )
    assert launch.agent
    assert line(launch.agent) == (
        "python -m accelerate.commands.launch --multi_gpu --num_machines 2 --num_processes 4 "
        "--machine_rank $SLURM_NODEID --main_process_ip $MASTER_ADDR "
        "--main_process_port $MASTER_PORT --num_cpu_threads_per_process $OMP_NUM_THREADS "
        "--no_python"
    )
    assert (launch.slots_per_node, launch.rank_env) == (1, ())


def test_accelerate_here_needs_no_srun() -> None:
    text = words(accelerate.command(request("local", nodes=1, command=("./a.sh",))))
    assert text.startswith("accelerate launch --multi_gpu --num_machines 1 --num_processes 2 ")
    assert "--machine_rank 0 " in text
    assert text.endswith("--no_python bash -c $rank_wrapper rank ./a.sh")


@pytest.mark.parametrize("word", ["--config_file", "--use_fsdp", "--use_deepspeed"])
def test_accelerate_is_told_once_how_it_trains(word: str) -> None:
    launch = accelerate.command(request(args=(word, "x")))
    assert launch.agent
    assert "--multi_gpu" not in line(launch.agent)
    assert line(launch.agent).endswith(f"{word} x --no_python")


def test_a_single_process_of_accelerate_is_named_by_us() -> None:
    """Accelerate starts it without torch's agent, and with --multi_gpu not at all."""
    launch = accelerate.command(request("local", tasks=1, nodes=1))
    assert "--multi_gpu" not in words(launch)
    assert dict(launch.rank_env)["RANK"] == Text(text="0")


def test_deepspeed_is_ranks_of_srun_with_local_rank() -> None:
    launch = deepspeed.command(request())
    assert words(launch) == (
        "srun --nodes=2 --ntasks=4 --ntasks-per-node=2 --cpus-per-task=3 --kill-on-bad-exit=1 "
        "--wait=60 bash -c $rank_wrapper rank sh -c $with_local_rank rank python t.py"
    )
    names = dict(launch.rank_env)
    assert names["RANK"] == JobVar(name="SLURM_PROCID")
    assert names["CROSS_RANK"] == JobVar(name="SLURM_NODEID")
    assert "with_local_rank" not in words(deepspeed.command(request(args=("--no_local_rank",))))


def test_deepspeed_here_is_torchruns_agent_with_the_programs_python() -> None:
    text = words(deepspeed.command(request("local", nodes=1)))
    assert text.startswith("python -m torch.distributed.run --nnodes 1 --nproc-per-node 2 ")
    assert text.endswith("bash -c $rank_wrapper rank sh -c $with_local_rank rank python t.py")


def test_srun_binds_ranks_and_not_agents() -> None:
    binding = Binding(cpus="mask_cpu:0x3,0xc", gpus="closest")
    text = words(srun.command(request(binding=binding, args=("--label",))))
    assert "--cpu-bind=mask_cpu:0x3,0xc --gpu-bind=closest --label bash -c" in text
    assert "mask_cpu" not in words(spawn.command(request(binding=binding)))


def test_options_for_a_launcher_that_is_run_folder_missing() -> None:
    with pytest.raises(PlanError, match=r"launcher_args --x: single starts the program itself"):
        single.command(request("local", tasks=1, nodes=1, args=("--x",)))
    with pytest.raises(PlanError, match="spawn starts the program itself"):
        spawn.command(request("local", args=("--x",)))
    assert "--x bash" in words(spawn.command(request(args=("--x",))))
