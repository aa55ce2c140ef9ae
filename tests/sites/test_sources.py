"""A value rests on a source of the file that it stands in."""

from pathlib import Path

import pytest

from hpc_train.base.values import Sourced
from hpc_train.sites.load import load_site
from hpc_train.sites.merge import source_of, unknown_covers
from hpc_train.sites.profile import SiteProfile

FAMILY = """\
schema: 1
name: rivers
family: true
description: d
scheduler: slurm
sources: [{what: leaflet, confidence: low}]
launchers: {default: srun, allowed: [srun], mpi: pmix}
env_blocks: [{env: {A: 1}}, {env: {B: 1}}]
"""
SITE = """\
schema: 1
name: mine
extends: rivers
description: d
sources:
  - {what: guide, confidence: high}
  - {what: scripts, confidence: medium, covers: [partitions.gpu, env_blocks.1]}
  - {what: mail, confidence: low, covers: [partitions.gpu.max_time]}
  - {what: call, confidence: low, covers: [partitions.gpu.max_time]}
launchers: {default: srun}
partitions: [{name: cpu, max_nodes: 2}, {name: gpu, max_nodes: 4, max_time: 1h}, {name: gpu2}]
env_blocks: [{env: {C: 1}}, {env: {D: 1}}]
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sourced[SiteProfile]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rivers.yaml").write_text(FAMILY)
    (tmp_path / "mine.yaml").write_text(SITE)
    return load_site("mine")


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("partitions.cpu.max_nodes", "guide"), ("partitions.gpu.max_nodes", "scripts"),
        ("partitions.1.max_nodes", "scripts"), ("partitions.gpu.max_time", "mail"),
        ("partitions.gpu2.name", "guide"), ("launchers.default", "guide"),
        ("launchers.mpi", "leaflet"), ("env_blocks.1.env.B", "leaflet"),
        ("env_blocks.2.env.C", "guide"), ("env_blocks.3.env.D", "scripts"),
        ("partitions.gpu.shared", None), ("partitions.fast.max_time", None),
        ("partitions.9.max_time", None), ("mem_request", None),
    ],
)  # fmt: skip
def test_the_source_that_covers_a_key_best(
    site: Sourced[SiteProfile], key: str, what: str | None
) -> None:
    source = source_of(site, key)
    assert (source and source.what) == what


def test_what_is_covered_and_not_there_is_named(site: Sourced[SiteProfile], tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    assert list(unknown_covers(path)) == []
    path.write_text(SITE.replace("[partitions.gpu,", "[partitions.gpus, launchers.mpi,"))
    assert list(unknown_covers(path)) == [
        f"{path}:7: this file has no key partitions.gpus",
        f"{path}:7: this file has no key launchers.mpi",
    ]
