"""Partitions and qualities of service that contradict themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.base.errors import SiteProfileError
from hpc_train.sites.load import load_site
from tests.sites.refused import refused

SITE = """\
schema: 1
name: mine
description: d
scheduler: slurm
launchers: {default: srun, allowed: [srun]}
"""


@pytest.mark.parametrize(("text", "message"), refused("partitions"))
def test_what_contradicts_itself_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"{SITE}{text}\n")
    with pytest.raises(SiteProfileError, match=message):
        load_site(str(path))


def test_each_partition_may_have_a_default_qos(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        f"{SITE}partitions: [{{name: a}}, {{name: b}}]\nqos:\n"
        "  - {name: qa, default: true, partitions: [a]}\n"
        "  - {name: qb, default: true, partitions: [b]}\n"
    )
    assert len(load_site(str(path)).value.qos) == 2


def test_a_star_is_any_partition_for_what_names_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        f"{SITE}partitions: [{{name: '*'}}]\nqos: [{{name: q, partitions: [theirs]}}]\n"
        "env_blocks: [{when: {partition: theirs}, env: {A: 1}}]\n"
    )
    assert load_site(str(path)).value.qos[0].partitions == ("theirs",)


@pytest.mark.parametrize(
    "text",
    [
        "partitions: [{name: a, min_nodes: 2, max_nodes: 2, min_gpus: 8, max_gpus: 8}]",
        "partitions: [{name: a, min_time: 1h, max_time: 1h, default_time: 1h}]",
        "partitions: [{name: a, nodes: 4, max_nodes: 4}]",
        "partitions: [{name: a, gpus_per_node: 4, cpus_per_node: 64, cpus_per_gpu: 16}]",
        "partitions: [{name: a, gpus_per_node: 4, mem_per_node: 400G, mem_per_gpu: 100G}]",
        "partitions: [{name: a, gpus_per_node: 4, gpu_order: [3, 2, 1, 0]}]",
        "partitions: [{name: a, gpus_per_node: 2, numa_cpus: ['0', '1'], gpu_numa: [1, 0]}]",
        "partition_choice: job\npartitions: [{name: a}]",
        "partition_choice: fitting\npartitions: [{name: a, default: true}]",
        "partitions: [{name: '*'}, {name: a, default: true}]",
        "account: {pattern: 'p[0-9]+', example: p1}",
    ],
)
def test_a_value_may_reach_its_limit(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"{SITE}{text}\n")
    assert load_site(str(path)).value.name == "mine"


@pytest.mark.parametrize(
    ("first", "second"), [("[a]", "[b, a]"), ("[]", "[a]"), ("[b]", "[]"), ("[]", "[]")]
)
def test_two_default_qos_of_a_partition_are_refused(
    tmp_path: Path, first: str, second: str
) -> None:
    path = tmp_path / "mine.yaml"
    qos = "".join(
        f"  - {{name: {name}, default: true, partitions: {names}}}\n"
        for name, names in (("x", first), ("y", second))
    )
    path.write_text(f"{SITE}partitions: [{{name: a}}, {{name: b}}]\nqos:\n{qos}")
    with pytest.raises(SiteProfileError, match=r"mine\.yaml:9: two defaults: x \(.*:8\) and y"):
        load_site(str(path))
