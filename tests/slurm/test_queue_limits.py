"""The queue that names lead to, and the limits that Slurm applies there."""

from __future__ import annotations

from typing import Any

import pytest

from hpc_train.base.decode import decode
from hpc_train.base.errors import SiteProfileError
from hpc_train.lint.lint_script import lint_script
from hpc_train.lint.rule import LintContext
from hpc_train.plans.queue_limits import SizeName, limits_on, queue_named
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
    ("names", "partition", "qos"),
    [
        ((None, None), 0, 1),
        (("batch", "long"), 0, 0),
        (("other", None), 1, None),
        (("other", "mine"), 1, 2),
    ],
)
def test_names_lead_to_entries(
    profile: SiteProfile, names: tuple[str | None, str | None], partition: int, qos: int | None
) -> None:
    queue = queue_named(profile, *names, None)
    assert queue.partition and queue.partition[0] == partition
    assert (queue.qos[0] if queue.qos else None) == qos


@pytest.mark.parametrize(
    ("size", "nodes", "payer", "expected"),
    [
        ("time", 2, (None, None), {"partitions.0.bounds.0.max_time": 7200}),
        ("time", 2, (None, "vip7"), {"partitions.0.bounds.1.max_time": 259200}),
        ("time", 3, (None, None), {"partitions.0.max_time": 43200}),
        ("time", None, (None, None), {"partitions.0.max_time": 43200}),
        ("time", 4, ("long", None), {"partitions.0.max_time": 43200, "qos.0.max_time": 86400}),
        ("nodes", 4, (None, None), {"partitions.0.max_nodes": 64, "partitions.0.nodes": 40}),
        ("gpus", 4, (None, None), {"qos.1.max_gpus": 8}),
    ],
)
def test_limits_of_partition_and_qos(
    profile: SiteProfile,
    size: SizeName,
    nodes: int | None,
    payer: tuple[str | None, str | None],
    expected: dict[str, int],
) -> None:
    queue = queue_named(profile, "batch", *payer)
    found = {limit.key: limit.value for limit in limits_on(size, queue, nodes)}
    assert {key: value for key, value in found.items() if "minutes" not in key} == expected


def test_node_minutes_limit_the_time_of_so_many_nodes(profile: SiteProfile) -> None:
    queue = queue_named(profile, "batch", "long", None)
    found = {limit.key: limit for limit in limits_on("time", queue, 10)}
    assert found["partitions.0.max_node_minutes"].value == 2400 * 60 // 10
    assert found["qos.0.max_node_minutes"].value == 6000 * 60 // 10
    assert found["qos.0.max_node_minutes"].note == "(6000 node-minutes over 10 nodes)"
    unknown = {limit.key for limit in limits_on("time", queue, None)}
    assert not {key for key in unknown if "minutes" in key}


@pytest.mark.parametrize(
    ("directives", "message"),
    [
        ("-p batch --nodes=41", "--nodes: 41, but batch has at most 40"),
        ("-p batch --nodes=2 --time=3:00:00", "batch has at most 02:00:00 for <=2 nodes"),
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
