"""The power limit of a GPU is that of its variant with the highest one, or not known."""

from __future__ import annotations

import pytest

from hpc_train.model.gpu_specs import gpu_spec


@pytest.mark.parametrize(
    ("name", "watts"),
    [
        ("NVIDIA A100-SXM4-80GB", 500),
        ("NVIDIA H100 80GB HBM3", 700),
        ("NVIDIA H200", 1000),
        ("NVIDIA GH200 120GB", 1000),
        ("NVIDIA B200", 1000),
        ("gb200", 1200),
        ("AMD Instinct MI300X", 750),
        ("Tesla V100-SXM2-32GB", None),
        ("mi250x", None),
    ],
)
def test_power_limits(name: str, watts: float | None) -> None:
    found = gpu_spec(name)
    assert found is not None
    assert found.tdp_w == watts
