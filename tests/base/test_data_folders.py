"""Where templates and profiles are found: the wheel first, then a checkout that is ours."""

from pathlib import Path

import pytest

from hpc_train.base import data_folders as assets


def test_installed_data_wins_over_a_checkout(tmp_path: Path) -> None:
    package = tmp_path / "hpc_train"
    for folder in (tmp_path / "templates", package / "_data" / "templates"):
        folder.mkdir(parents=True)
    assert assets.locate("templates", package) == package / "_data" / "templates"
    assert assets.template_folder() == Path(__file__).resolve().parents[2] / "templates"


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
