"""Fabric x nodes x vendor x version -> exactly these variables, and where each comes from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hpc_train.model.plan import LaunchPlan

Planned = Callable[[dict[str, Any], int, int, str], LaunchPlan]

ALWAYS = {"OMP_NUM_THREADS", "PYTHONUNBUFFERED"}
HCAS = ["mlx5_0", "mlx5_1:1"]
SLINGSHOT = {
    "NCCL_NET": "AWS Libfabric",
    "NCCL_CROSS_NIC": "1",
    "NCCL_NET_GDR_LEVEL": "PHB",
    "FI_MR_CACHE_MONITOR": "userfaultfd",
    "FI_CXI_DISABLE_HOST_REGISTER": "1",
    "FI_CXI_DEFAULT_CQ_SIZE": "131072",
    "FI_CXI_DEFAULT_TX_SIZE": "2048",
    "FI_CXI_RX_MATCH_MODE": "hybrid",
    "MPICH_GPU_SUPPORT_ENABLED": "0",
}
ALT_READ = {
    "FI_CXI_RDZV_PROTO": "alt_read",
    "FI_CXI_RDZV_EAGER_SIZE": "0",
    "FI_CXI_RDZV_THRESHOLD": "0",
    "FI_CXI_RDZV_GET_MIN": "0",
}
FINE_GRAIN = {"HSA_FORCE_FINE_GRAIN_PCIE": "1"}
HSN = {"GLOO_SOCKET_IFNAME": "hsn0,hsn1", "NCCL_SOCKET_IFNAME": "=hsn0,hsn1"}

# network, nodes, GPUs per node, launcher -> the variables beside those that are always there.
Row = tuple[dict[str, Any], int, int, str, dict[str, str]]
TABLE: dict[str, Row] = {
    "unknown": ({"nccl": "2.27"}, 4, 4, "srun", {}),
    "ib": ({"fabric": "infiniband"}, 2, 4, "srun", {"NCCL_NET": "IB"}),
    "ib-one-node": ({"fabric": "infiniband", "hcas": HCAS}, 1, 4, "srun", {}),
    "ib-full": (
        {"fabric": "infiniband", "hcas": HCAS, "gdr_level": "PXB", "interfaces": ["ib0"]},
        2,
        4,
        "torchrun",
        {
            "NCCL_NET": "IB",
            "NCCL_IB_HCA": "=mlx5_0,mlx5_1:1",
            "NCCL_NET_GDR_LEVEL": "PXB",
            "NCCL_SOCKET_IFNAME": "=ib0",
            "GLOO_SOCKET_IFNAME": "ib0",
        },
    ),
    "ib-old-nccl": ({"fabric": "infiniband", "nccl": "2.18"}, 2, 4, "srun", {"NCCL_NET": "IB"}),
    "ib-amd": (
        {"fabric": "infiniband", "gpus": "amd"},
        2,
        4,
        "srun",
        {"NCCL_NET": "IB", **FINE_GRAIN},
    ),
    "ib-cpu": (
        {"fabric": "infiniband", "interfaces": ["ib0"], "hcas": HCAS},
        2,
        0,
        "srun",
        {"GLOO_SOCKET_IFNAME": "ib0"},
    ),
    "ib-mpirun": (
        {"fabric": "infiniband"},
        2,
        4,
        "mpirun",
        {"NCCL_NET": "IB", "OMPI_MCA_pml": "ucx"},
    ),
    "ib-mpirun-cpu": ({"fabric": "infiniband"}, 2, 0, "mpirun", {"OMPI_MCA_pml": "ucx"}),
    "ib-mpirun-one-node": ({"fabric": "infiniband"}, 1, 4, "mpirun", {}),
    "roce-new": (
        {"fabric": "roce", "nccl": "2.21.5", "traffic_class": 106, "hcas": ["mlx5_2"]},
        2,
        8,
        "srun",
        {"NCCL_NET": "IB", "NCCL_IB_TC": "106", "NCCL_IB_HCA": "=mlx5_2"},
    ),
    "roce-old": (
        {"fabric": "roce", "nccl": "2.20.5", "gid_index": 3},
        2,
        8,
        "srun",
        {"NCCL_NET": "IB", "NCCL_IB_GID_INDEX": "3"},
    ),
    "roce-gid-with-new-nccl": (
        {"fabric": "roce", "nccl": "2.21", "gid_index": 3},
        2,
        8,
        "srun",
        {"NCCL_NET": "IB"},
    ),
    "roce-mpirun": ({"fabric": "roce"}, 2, 0, "mpirun", {"OMPI_MCA_pml": "ucx"}),
    "slingshot": ({"fabric": "slingshot"}, 2, 4, "srun", SLINGSHOT),
    "slingshot-one-node": (
        {"fabric": "slingshot", "interfaces": ["hsn0"], "alt_read": True},
        1,
        4,
        "srun",
        {"NCCL_NET": "Socket"},
    ),
    "slingshot-one-node-cpu": ({"fabric": "slingshot"}, 1, 0, "srun", {}),
    "slingshot-alt-read": (
        {"fabric": "slingshot", "interfaces": ["hsn0", "hsn1"], "alt_read": True},
        2,
        4,
        "srun",
        {**SLINGSHOT, **ALT_READ, **HSN},
    ),
    "slingshot-amd-plugin": (
        {"fabric": "slingshot", "gpus": "amd", "plugin": "/opt/librccl-net.so"},
        2,
        8,
        "srun",
        {**SLINGSHOT, **FINE_GRAIN, "NCCL_NET_PLUGIN": "/opt/librccl-net.so"},
    ),
    "slingshot-mpirun": (
        {"fabric": "slingshot"},
        2,
        0,
        "mpirun",
        {"OMPI_MCA_pml": "cm", "OMPI_MCA_mtl": "ofi"},
    ),
    "efa": (
        {"fabric": "efa", "exclude_interfaces": ["docker", "lo", "veth"]},
        2,
        8,
        "srun",
        {"FI_PROVIDER": "efa", "NCCL_SOCKET_IFNAME": "^docker,lo,veth"},
    ),
    "efa-one-node": ({"fabric": "efa"}, 1, 8, "srun", {}),
    "efa-mpirun": ({"fabric": "efa"}, 2, 8, "mpirun", {"FI_PROVIDER": "efa"}),
    "gcp": ({"fabric": "gcp-tcpx", "script": "/x"}, 2, 8, "srun", {}),
    "ethernet": (
        {"fabric": "ethernet", "interfaces": ["eth0"]},
        2,
        1,
        "srun",
        {"NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "=eth0", "GLOO_SOCKET_IFNAME": "eth0"},
    ),
    "ethernet-cpu": (
        {"fabric": "ethernet", "interfaces": ["eth0"]},
        2,
        0,
        "mpirun",
        {"GLOO_SOCKET_IFNAME": "eth0"},
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_the_fabric_gives_these_variables_and_no_other(planned: Planned, case: str) -> None:
    network, nodes, gpus, launcher, expected = TABLE[case]
    plan = planned(network, nodes, gpus, launcher)
    assert {name: value for name, value in plan.env if name not in ALWAYS} == expected
    assert plan.changes == ()


@pytest.mark.parametrize("case", [name for name, row in TABLE.items() if row[-1]])
def test_each_variable_says_why_and_who_says_so(planned: Planned, case: str) -> None:
    network, nodes, gpus, launcher, expected = TABLE[case]
    plan = planned(network, nodes, gpus, launcher)
    for name in expected:
        setting = plan.settings[f"env.{name}"]
        assert setting.why
        assert setting.source
        assert setting.origin in ("rule", "big.yaml")
