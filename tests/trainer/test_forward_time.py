"""The time of forward passes without what a rank waits for, on two ranks of which one is slow."""

import json
import sys
import time
from pathlib import Path

import pytest

from tests.trainer.launching import finish, meeting_point, start

pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]
SLOW_S, LAYERS = 0.5, 3


@pytest.mark.long
def test_the_wait_for_shards_is_not_the_time_of_a_rank() -> None:
    mesh = "replicate,shard"
    common = {**meeting_point(), "WORLD_SIZE": 2, "PYTHONPATH": ROOT}
    program = ("-m", "tests.trainer.test_forward_time", mesh)
    started = [start(program, **common, RANK=rank) for rank in (0, 1)]
    ranks = [finish(rank) for rank in started]
    assert [code for code, _, _ in ranks] == [0, 0], ranks
    quick, slow = (json.loads(out) for _, out, _ in ranks)
    assert slow["forward"] >= LAYERS * SLOW_S
    # It waits as long as the other computes, and that is in the whole pass only.
    assert quick["forward"] < slow["forward"] / 1.5
    assert quick["whole"] > (LAYERS - 1) * SLOW_S


def main(names: list[str]) -> None:
    import torch
    from torch import distributed, nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    from hpc_train.trainer.spawn_ranks import leave
    from hpc_train.trainer.strategies.base import ForwardTime

    class Layer(nn.Linear):
        def forward(self, value: torch.Tensor) -> torch.Tensor:
            time.sleep(SLOW_S * distributed.get_rank())
            return super().forward(value)

    distributed.init_process_group("gloo")
    sizes = (2,) if len(names) == 1 else (1, 2)
    mesh = init_device_mesh("cpu", sizes, mesh_dim_names=tuple(names))
    model = nn.Sequential(*(Layer(8, 8) for _ in range(LAYERS)))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    forward = ForwardTime(model, torch.device("cpu"))
    began = time.perf_counter()
    model(torch.ones(1, 8))
    whole = time.perf_counter() - began
    print(json.dumps({"forward": forward.seconds(), "whole": whole}), flush=True)  # noqa: T201
    distributed.barrier()
    leave(0)


if __name__ == "__main__":
    main(sys.argv[1].split(","))
