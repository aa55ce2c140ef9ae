"""The queue that names lead to, and the limits that Slurm applies there."""

from __future__ import annotations

from typing import Any

import pytest

from hpc_train.base.decode import decode
from hpc_train.base.errors import SiteProfileError
from hpc_train.lint.lint_script import lint_script
from hpc_train.lint.rule import LintContext
from hpc_train.sites.profile import SiteProfile

PARTITIONS = [
    {
        "name": "batch",
        "default": True,
        "nodes": 40,
        "max_nodes": 64,
        "max_time": "12h",
        "max_node_minutes": 2400,
        "bounds": [
            {"nodes": "<=2", "max_time": "2h"},
            {"account": "vip*", "max_time": "3-0:00"},
        ],
    },
    {"name": "*", "max_time": "1h"},
]
QOS = [
    {"name": "long", "partitions": ["batch"], "max_time": "1d", "max_node_minutes": 6000},
    {"name": "usual", "default": True, "partitions": ["batch"], "max_gpus": 8},
    {"name": "*", "max_nodes": 3},
]


@pytest.fixture
def profile() -> SiteProfile:
    data: dict[str, Any] = {
        "schema": 1,
        "name": "big",
        "description": "d",
        "scheduler": "slurm",
        "launchers": {"default": "srun", "allowed": ["srun"]},
        "partitions": PARTITIONS,
        "qos": QOS,
    }
    return decode(data, SiteProfile, {"": "big.yaml"}, SiteProfileError).value


@pytest.mark.parametrize(
    ("directives", "message"),
    [
        ("-p batch --nodes=41", "--nodes: 41, but batch has at most 40"),
        ("-p batch --nodes=2 --time=3:00:00", "batch has at most 02:00:00 for <=2 nodes"),
        ("-p batch --nodes=2 --gpus-per-node=8", "qos usual has at most 8"),
        ("-p x -q mine --nodes=4", "--nodes: 4, but qos * has at most 3"),
        ("-p batch -q long --nodes=20 --time=4:00:00", "(2400 node-minutes over 20 nodes)"),
    ],
)
def test_a_script_is_held_against_the_same_limits(
    profile: SiteProfile, directives: str, message: str
) -> None:
    text = f"#!/bin/bash\n#SBATCH {directives}\nsrun python t.py\n"
    found = lint_script(text, LintContext(site=profile))
    assert any(message in finding.message for finding in found if finding.id == "HT702"), found
