"""The registry: built-ins without entry points, plug-ins through real package metadata."""

from pathlib import Path

import pytest

from hpc_train.base import registry
from hpc_train.base.errors import UnknownNameError

GROUPS: tuple[registry.PluginGroup, ...] = ("launchers", "parsers", "executors", "formats")


def install(folder: Path, package: str, entries: str, source: str = "ANSWER = 42\n") -> None:
    """Lay out a package as an installer would, with its entry points."""
    module = package.replace("-", "_")
    (folder / f"{module}.py").write_text(source)
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(entries)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("group", GROUPS)
def test_every_built_in_loads(group: registry.PluginGroup) -> None:
    for name in registry.BUILT_IN[group]:
        assert registry.load(group, name) is not None


def test_plug_in_is_listed_and_loaded(site: Path) -> None:
    install(site, "fast-csv", "[hpctrain.formats]\nfast = fast_csv:ANSWER\n")
    assert "fast" in registry.names("formats")
    assert registry.load("formats", "fast") == 42


def test_unknown_name_suggests_a_plug_in(site: Path) -> None:
    install(site, "fast-html", "[hpctrain.formats]\nfasthtml = fast_html:ANSWER\n")
    with pytest.raises(UnknownNameError, match="did you mean 'fasthtml'"):
        registry.load("formats", "fasthtm")


def test_broken_plug_in_is_a_warning_when_listing(
    site: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install(site, "rotten", "[hpctrain.parsers]\nrotten = rotten:PARSER\n", "1 / 0\n")
    assert "rotten" not in registry.names("parsers")
    assert "the parser 'rotten' of rotten cannot be loaded: ZeroDivisionError" in caplog.text


def test_broken_plug_in_is_an_error_when_chosen(site: Path) -> None:
    install(site, "hollow", "[hpctrain.parsers]\nhollow = hollow:ABSENT\n")
    with pytest.raises(registry.PluginError, match=r"'hollow' of hollow .*AttributeError"):
        registry.load("parsers", "hollow")
