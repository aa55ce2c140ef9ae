"""`extends`: a profile over its parents."""

from pathlib import Path

import pytest

from hpc_train.base import data_folders as assets
from hpc_train.base.errors import SiteProfileError
from hpc_train.base.values import Sourced
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import SiteProfile

FAMILY = """\
schema: 1
name: family
family: true
description: a family
scheduler: slurm
launchers: {default: srun, allowed: [srun, torchrun], mpi: pmix}
env: {A: 1, B: 2}
env_blocks: [{env: {C: 3}}]
partitions:
  - {name: small, default: true, max_nodes: 4}
  - {name: large, max_nodes: 64}
"""
CHILD = """\
schema: 1
name: mine
extends: family
description: my site
launchers: {default: torchrun}
env: {B: 20, A: null}
env_blocks: [{env: {D: 4}}]
partitions:
  - {name: large, max_nodes: 128, max_time: 1d}
  - {name: huge}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HPCTRAIN_SITE_PATH", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(assets, "_SYSTEM", tmp_path / "system")
    for folder in ("own/families", "config/hpctrain", "system/site_profiles"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


@pytest.fixture
def site(here: Path) -> Sourced[SiteProfile]:
    (here / "own/families/family.yaml").write_text(FAMILY)
    (here / "own/mine.yaml").write_text(CHILD)
    return load_site("mine")


def test_mappings_are_joined(site: Sourced[SiteProfile]) -> None:
    assert site.value.launchers.default == "torchrun"
    assert site.value.launchers.mpi == "pmix"
    assert site.value.env == {"B": "20"}


def test_lists_are_joined_by_name_or_appended(site: Sourced[SiteProfile]) -> None:
    sizes = {one.name: one.max_nodes for one in site.value.partitions}
    assert sizes == {"small": 4, "large": 128, "huge": None}
    assert [block.env for block in site.value.env_blocks] == [{"C": "3"}, {"D": "4"}]


def test_each_value_has_the_line_that_it_comes_from(site: Sourced[SiteProfile]) -> None:
    ends = {
        key: Path(site.origin(key)).name
        for key in ("launchers.mpi", "launchers.default", "env.B", "partitions.0.max_nodes")
    }
    assert ends == {
        "launchers.mpi": "family.yaml:6",
        "launchers.default": "mine.yaml:5",
        "env.B": "mine.yaml:6",
        "partitions.0.max_nodes": "family.yaml:10",
    }
    assert Path(site.origin("partitions.1.max_nodes")).name == "mine.yaml:9"
    assert Path(site.origin("partitions.2.name")).name == "mine.yaml:10"


def test_a_family_is_no_site(site: Sourced[SiteProfile]) -> None:
    with pytest.raises(SiteProfileError, match=r"family\.yaml:3: family is a family"):
        load_site("family")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a": "b", "b": "a"}, r"extends is circular: a -> b -> a"),
        ({"a": "a"}, r"a\.yaml:3: extends: 'a' is this file, and there is no other"),
        ({"a": "familly"}, r"no profile or family 'familly'"),
    ],
)
def test_a_parent_that_leads_nowhere(here: Path, files: dict[str, str], message: str) -> None:
    for name, parent in files.items():
        (here / f"own/{name}.yaml").write_text(f"schema: 1\nname: {name}\nextends: {parent}\n")
    with pytest.raises(SiteProfileError, match=message):
        load_site("a")


def test_a_newer_schema_is_named_as_such(here: Path) -> None:
    (here / "own/a.yaml").write_text("schema: 2\nname: a\nfancy: true\n")
    with pytest.raises(SiteProfileError, match=r"a\.yaml:1: written by a newer .* \(schema 2,"):
        load_site("a")


@pytest.mark.parametrize(
    ("parent", "child", "message"),
    [
        ("sources: text", "sources: [{what: x, confidence: high}]", "sources: a list, but neither"),
        ("partitions: {a: b}", "partitions: [{name: a}]", "partitions: a list, but a mapping in"),
        ("env: [A]", "env: {A: 1}", "env: a mapping, but a list in"),
    ],
)
def test_a_parent_of_another_kind_is_refused(
    here: Path, parent: str, child: str, message: str
) -> None:
    text = "\n".join(line for line in FAMILY.splitlines() if not line.startswith(" "))
    text = text.replace("partitions:", "").replace("env: {A: 1, B: 2}", "")
    (here / "own/families/family.yaml").write_text(f"{text}\n{parent}\n")
    (here / "own/a.yaml").write_text(f"schema: 1\nname: a\nextends: family\n{child}\n")
    with pytest.raises(SiteProfileError, match=rf"own/a\.yaml:4: {message}"):
        load_site("a")


def test_nobody_verifies_for_others(here: Path) -> None:
    (here / "own/families/family.yaml").write_text(f"{FAMILY}verified_on: 2026-08\n")
    (here / "own/mine.yaml").write_text(CHILD)
    site = load_site("mine").value
    assert (site.verified_on, site.family, site.extends) == (None, False, "family")
