"""The number of ranks where programs print their arguments, and never from another line."""

from __future__ import annotations

import pytest

from tests.records.parse_text import parse

DEEPSPEED = "[2024-09-15 00:13:21,400] [INFO] [config.py:1003:print]   world_size ........ 4\n"
TF_FINAL = (
    "I0826 15:10:09 1404 classifier_trainer.py:189] Final model parameters: {'mode': None,\n"
    " 'runtime': {'all_reduce_alg': None,\n             'num_gpus': 2,\n"
    "             'num_packs': 1,\n             'worker_hosts': %s},\n"
)


def world_sizes(text: str) -> list[tuple[float, str]]:
    found = parse(text.encode())
    return [(hit.value, hit.scope) for _, hit, _ in found if hit.metric == "world_size"]


@pytest.mark.parametrize(
    "text",
    [
        "world_size ....... 16\n",
        "[default0]:  world_size ...................................... 16\n",
        "Namespace(batch_size=8, dist_url='env://', world_size=16)\n",
        "0: Namespace(a='(x)', world_size=16, distributed=True, transforms=ToTensor())\n",
        "args: Namespace(distributed_world_size=16, lr=[0.1])\n",
        "Namespace(accum_iter=1,\nbatch_size=64,\nworld_size=16,\nweight_decay=0.05)\n",
        "I am running on rank 0 with world size 16.\n",
        "| distributed init (rank 0, world 16): env://\n",
        "[2024-09-15 00:13:21,400] [INFO] [launch.py:162:main] dist_world_size=16\n",
        "[2024-09-15 00:13:21,400] [INFO] [comm.py:637:mpi_discovery] Discovered MPI settings of "
        "world_rank=0, local_rank=0, world_size=16, master_addr=10.0.0.1, master_port=29500\n",
        DEEPSPEED.replace(" 4\n", " 16\n"),
    ],
)
def test_arguments_state_it(text: str) -> None:
    assert world_sizes(text) == [(16, "global")]


@pytest.mark.parametrize(
    "text",
    [
        "Namespace(world_size=1, rank=-1)\n",
        "Namespace(world_size=-1, dist_backend='nccl')\n",
        "Namespace(multiprocessing_distributed=True, world_size=2)\n",
        "Namespace(world_size=2, multiprocessing_distributed=True)\n",
        "Namespace(lr=0.1)\nworld_size=16\n",
        "Namespace(lr=0.1,\nepochs=3)\nworld_size=16,\n",
        "Namespace(old_world_size=16, my.world_size=16)\n",
        "init_process_group(backend, rank=rank, world_size=16)\n",
        "with world size 8 this runs on rank 0\n",
        "{'num_cpus': 2, 'num_gpus': 2, 'worker_hosts': None}\n",
        TF_FINAL.replace("Final model", "Base") % "None",
        "Using topology: {ProcessCoord(pipe=0, data=0): 0, ProcessCoord(pipe=1, data=0): 1}\n"
        + DEEPSPEED,
    ],
)
def test_other_lines_state_nothing(text: str) -> None:
    assert world_sizes(text) == []


def test_tensorflow_counts_gpus_of_all_workers() -> None:
    assert world_sizes(TF_FINAL % "None") == [(2, "global")]
    assert world_sizes(TF_FINAL % "'a:1,b:1,c:1'") == [(6, "global")]


@pytest.mark.parametrize(
    "head",
    [
        "  tensor_model_parallel_size ...... 4\n  world_size ....... 16\n",
        "using world size: 16, data-parallel-size: 4, tensor-model-parallel size: 4\n",
    ],
)
def test_deepspeed_beside_megatron_counts_data_parallel_ranks(head: str) -> None:
    assert world_sizes(head + DEEPSPEED) == [(16, "global")]
