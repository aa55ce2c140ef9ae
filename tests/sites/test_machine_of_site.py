"""The machine of a partition: from the profile, and from the vendor's data sheet."""

from pathlib import Path

import pytest

from hpc_train.advice.machine import machine_of
from hpc_train.base.errors import PlanError
from hpc_train.sites.load import load_site

SITE = """\
schema: 1
name: mine
description: d
scheduler: slurm
launchers: {default: srun, allowed: [srun]}
partitions:
  - {name: cpu, default: true}
  - name: a100
    gpus_per_node: 4
    gpu_model: A100-SXM-64GB
    nics_per_node: 2
    nic_gbps: 200
    max_nodes: 8
  - {name: own, gpus_per_node: 2, gpu_model: NEW9, gpu_peak_tflops: {bf16: 100}}
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "mine.yaml").write_text(SITE)
    return str(tmp_path / "mine.yaml")


def test_profile_and_data_sheet(path: str) -> None:
    found = machine_of(load_site(path), "a100")
    assert (found.least_gib, found.most_gib, found.gpu_link) == (64, 64, 300)
    assert (found.node_link, found.max_nodes, found.peak_tflops["bf16"]) == (50, 8, 312)
    assert found.sources["most_gib"] == "the vendor's data sheet of A100-SXM-64GB"
    assert found.sources["gpus_per_node"] == f"{path}:9"


def test_a_job_without_gpus_has_ranks_on_processors(path: str) -> None:
    found = machine_of(load_site(path), "a100", gpus=False)
    assert (found.gpus_per_node, found.most_gib) == (0, None)
    assert (found.node_link, found.max_nodes) == (50, 8)


def test_the_default_partition_and_one_that_is_not_there(path: str) -> None:
    assert machine_of(load_site(path), None).partition == "cpu"
    with pytest.raises(PlanError, match="mine has no partition 'gpu'"):
        machine_of(load_site(path), "gpu")


@pytest.mark.parametrize("site", ["perlmutter", "juwels-booster", "lumi-g", "local"])
def test_shipped_profiles(site: str) -> None:
    found = machine_of(load_site(site), None)
    assert (found.gpus_per_node > 0) == (site != "local")
    assert not found.gpus_per_node or found.most_gib
