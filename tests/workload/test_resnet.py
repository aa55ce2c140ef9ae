from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from hpc_train.model.training_strategies import parts_of  # noqa: E402
from hpc_train.workload.models import cut, make_model  # noqa: E402


def resnet(device: str = "meta") -> nn.Sequential:
    with torch.device(device):
        return make_model("resnet50", channels=3, classes=1000, width=0, dtype=torch.float32)


def test_parameters_and_operations_are_those_of_resnet_50() -> None:
    """As torchvision states of resnet50: 25,557,032 parameters, 4.09 G multiplications."""
    model = resnet()
    assert sum(parameter.numel() for parameter in model.parameters()) == 25_557_032
    with FlopCounterMode(display=False) as counter:
        assert model(torch.empty(1, 3, 224, 224, device="meta")).shape == (1, 1000)
    assert counter.get_total_flops() / 2e9 == pytest.approx(4.09, abs=0.005)


def test_it_can_be_cut_between_all_its_parts() -> None:
    stages = cut(resnet(), "resnet50", parts_of("resnet50"))
    assert [len(stage) for stage in stages] == [1] * 18
    small = torch.empty(2, 3, 32, 32, device="meta")
    for stage in stages:
        small = stage(small)
    assert small.shape == (2, 1000)
