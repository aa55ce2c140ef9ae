"""`hpctrain advise`: from a job, a site and earlier results to a row for each strategy."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Hpctrain

JOB = """\
name: gpt
command: [python, -m, hpc_train.trainer.train, --global-batch-size, "512", --steps, "10000"]
trainer: {model: gpt-124m, precision: bf16}
resources: {nodes: 1, gpus_per_node: 4, time: 5m}
"""


@pytest.fixture
def job(tmp_path: Path) -> str:
    (tmp_path / "job.yaml").write_text(JOB)
    return str(tmp_path / "job.yaml")


def rows(text: str) -> dict[tuple[str, int], dict[str, Any]]:
    return {(row["strategy"], row["ranks"]): row for row in json.loads(text)["rows"]}


def test_the_profile_alone_gives_bounds(hpctrain: Hpctrain, job: str) -> None:
    made = hpctrain("advise", job, "--site", "juwels-booster", "--gpus", "16")
    assert made.returncode == 0, made.stderr
    assert "gpt on juwels-booster, booster" in made.stdout
    assert "One GPU suffices for the memory with micro-batches of " in made.stdout
    assert "Missing: a measured step" in made.stdout
    found = rows(hpctrain("advise", job, "--site", "juwels-booster", "--json").stdout)
    single = found["single", 1]
    assert single["step_s"]["low"] > 1
    assert single["step_s"]["high"] is None
    assert set(single["memory_bytes"]) >= {"states", "activations", "logits"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gpus", "0"], "--gpus 0: must be 1 to"),
        (["--deadline", "24"], "--deadline '24': must be above 0, such as 24h"),
        (["--budget", "much"], "--budget 'much': must be above 0, such as 500GPUh"),
        (["--condition", "step=3"], "did you mean 'steps'?"),
        (["--condition", "parameters=many"], "parameters 'many': not a whole number above 0"),
    ],
)
def test_wrong_input_is_refused(
    hpctrain: Hpctrain, job: str, words: list[str], message: str
) -> None:
    made = hpctrain("advise", job, "--site", "perlmutter", *words)
    assert made.returncode == 2, made.stdout
    assert message in made.stderr
    assert "Traceback" not in made.stderr


PROGRAM = """\
import torch
from torch import nn

def make_model():
    blocks = [nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)) for _ in range(4)]
    return nn.Sequential(*blocks), torch.zeros(2, 64)
"""
OWN_JOB = """\
name: own
command: [python, train.py]
resources: {nodes: 1, gpus_per_node: 4, time: 5m}
"""


@pytest.mark.torch
@pytest.mark.process
def test_a_program_is_counted(hpctrain: Hpctrain, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(OWN_JOB)
    (tmp_path / "train.py").write_text(PROGRAM)
    asked = ("advise", "job.yaml", "--site", "juwels-booster", "--condition", "global_batch=64")
    made = hpctrain(*asked, "--program", "train:make_model", "--json")
    assert made.returncode == 0, made.stderr
    sources = {row["name"]: row for row in json.loads(made.stdout)["sources"]}
    assert sources["parameters"]["value"] == 4 * (64 * 256 + 256 + 256 * 64 + 64)
    assert sources["parameters"]["source"] == "--program train:make_model"
    single = rows(made.stdout)["single", 1]
    assert single["fits"] == "yes"
    assert single["memory_bytes"]["activations"]["high"] is not None
    wrong = hpctrain(*asked, "--program", "train.make_model")
    assert wrong.returncode == 2
    assert "not MODULE:FUNCTION" in wrong.stderr
