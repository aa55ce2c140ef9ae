"""`hpctrain advise backend`: rules, what `auto` selects on a site, and the torch of python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Hpctrain

BARE_IB = """\
schema: 1
name: bare
description: nodes on InfiniBand without IP
launchers: {{default: srun, allowed: [srun]}}
scheduler: slurm
network: {{fabric: infiniband, ip_over_ib: false, torch_mpi: {mpi}}}
partitions:
  - {{name: cpu}}
  - {{name: gpu, gpus_per_node: 4, gpu_type: a100}}
"""


@pytest.mark.process
def test_the_rules_have_reasons_and_need_no_job(hpctrain: Hpctrain) -> None:
    made = hpctrain("advise", "backend", "--site", "local")
    assert made.returncode == 0, made.stderr
    text = " ".join(made.stdout.split())
    assert "NVIDIA GPU InfiniBand nccl -- the only backend with direct access" in text
    assert "CPU InfiniBand gloo mpi gloo needs IP over InfiniBand" in text
    assert "reduce_scatter: fsdp, hsdp yes yes no no yes yes" in text


@pytest.mark.process
def test_json_has_every_rule(hpctrain: Hpctrain) -> None:
    found = json.loads(hpctrain("advise", "backend", "--site", "juwels-booster", "--json").stdout)
    pairs = {(row["device"], row["network"]): row["backend"] for row in found["rules"]}
    assert pairs["CPU", "Ethernet"] == pairs["CPU", "InfiniBand"] == "gloo"
    assert pairs["NVIDIA GPU", "Ethernet"] == pairs["NVIDIA GPU", "InfiniBand"] == "nccl"
    assert all(row["reason"] for row in found["rules"])
    assert found["conditions"]["automatic"] == {"with GPUs": "nccl"}
    assert found["conditions"]["fabric"] == "infiniband"


@pytest.mark.process
@pytest.mark.parametrize(("mpi", "backend"), [("true", "mpi"), ("false", "gloo")])
def test_what_auto_selects_follows_the_profile(
    hpctrain: Hpctrain, tmp_path: Path, mpi: str, backend: str
) -> None:
    (tmp_path / "bare.yaml").write_text(BARE_IB.format(mpi=mpi))
    found = json.loads(hpctrain("advise", "backend", "--site", "./bare.yaml", "--json").stdout)
    assert found["conditions"]["automatic"] == {"with GPUs": "nccl", "without GPUs": backend}


@pytest.mark.process
def test_the_backends_of_this_torch(hpctrain: Hpctrain) -> None:
    dist = pytest.importorskip("torch.distributed")
    found = json.loads(hpctrain("advise", "backend", "--site", "local", "--json").stdout)
    has = {row["backend"]: row["has"] == "yes" for row in found["torch"]}
    assert has == {name: dist.is_backend_available(name) for name in has}
    assert set(has) == {"gloo", "nccl", "xccl", "mpi", "ucc"}


@pytest.mark.process
def test_without_torch_the_rules_stand(hpctrain: Hpctrain, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('not here')\n")
    made = hpctrain("advise", "backend", "--site", "local", PYTHONPATH=str(tmp_path))
    assert made.returncode == 0, made.stderr
    assert "What torch was built with is unknown" in made.stdout
    assert "This torch" not in made.stdout
    assert "Rules" in made.stdout


def test_options_of_files_are_refused(hpctrain: Hpctrain) -> None:
    for words in (["--gpus", "3"], ["job.yaml"]):
        made = hpctrain("advise", "backend", *words)
        assert made.returncode == 2
        assert "Traceback" not in made.stderr
    assert "Missing argument 'FILE'" in hpctrain("advise").stderr


def test_a_file_of_that_name_is_a_path(hpctrain: Hpctrain, tmp_path: Path) -> None:
    (tmp_path / "backend").write_text("print()\n")
    made = hpctrain("advise", "./backend", "--site", "local", "--gpus", "1")
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("backend on local")
