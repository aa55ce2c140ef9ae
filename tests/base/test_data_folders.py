"""Where templates and profiles are found: the wheel first, then a checkout that is ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.base import data_folders as assets

OURS = '[project]\nname = "hpctrain"\n'


def lay_out(root: Path, *, project: str | None = None, installed: bool = False) -> Path:
    package = root / "hpc_train"
    (root / "templates").mkdir(parents=True)
    package.mkdir()
    if installed:
        (package / "_data" / "templates").mkdir(parents=True)
    if project is not None:
        (root / "pyproject.toml").write_text(project)
    return package


def test_this_checkout_has_both_folders() -> None:
    root = Path(__file__).resolve().parents[2]
    assert assets.template_folder() == root / "templates"
    assert assets.profile_folder() == root / "site_profiles"


def test_installed_data_wins_over_a_checkout(tmp_path: Path) -> None:
    package = lay_out(tmp_path, project=OURS, installed=True)
    assert assets.locate("templates", package) == package / "_data" / "templates"


def test_a_checkout_is_used_without_installed_data(tmp_path: Path) -> None:
    package = lay_out(tmp_path, project=OURS)
    assert assets.locate("templates", package) == tmp_path / "templates"


def test_templates_are_looked_for_in_order_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("here", "profile", "first", "second", "config/hpctrain")
    for name in names:
        (tmp_path / name / "templates").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("first")
    monkeypatch.chdir(tmp_path / "here")
    path = [tmp_path / name for name in ("first", "empty", "link", "second")]
    monkeypatch.setenv("HPCTRAIN_SITE_PATH", ":".join(map(str, path)))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    found = assets.template_path(tmp_path / "profile" / "mine.yaml")
    own = [folder for folder in found if folder != Path("/etc/hpctrain/templates")]
    assert own == [Path("templates"), *(tmp_path / name / "templates" for name in names[1:])]


def test_the_templates_of_a_checkout_are_not_a_site_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).resolve().parents[2])
    assert Path("templates") not in assets.template_path(Path("site_profiles/local.yaml"))
