"""Templates of the package are compiled once, and again when they or our modules have changed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType

import pytest
from jinja2 import Environment

from hpc_train.model.plan import LaunchPlan
from hpc_train.scripts import compiled_template_cache, render
from hpc_train.scripts.compiled_template_cache import cached_code

Places = tuple[Path, Path]
TEXT = "{{ plan.name }}"


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    """Yield a folder of modules and one of compiled templates that are not the package's."""
    found = (tmp_path / "modules", tmp_path / "cache")
    for folder in found:
        folder.mkdir()
    module = found[0] / "blocks.py"
    module.write_text("one\n")
    monkeypatch.setattr(compiled_template_cache, "MODULES", (module,))
    monkeypatch.setattr(compiled_template_cache, "FOLDER", found[1])
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    compiled_template_cache._stamp.cache_clear()
    yield found
    compiled_template_cache._stamp.cache_clear()


def times(*texts: str, before: Callable[[], object] = lambda: None) -> int:
    """Return how often a template is compiled that has these texts, one after the other."""
    made = []

    def make(text: str) -> CodeType:
        made.append(text)
        return compile(repr(text), "t", "eval")

    for number, text in enumerate(texts):
        if number:
            before()
        code = cached_code(Environment(), "0:t", "t", text, lambda: make(text))  # noqa: B023, S701
        assert eval(code) == text  # noqa: S307
    return len(made)


def test_once_for_a_text(places: Places) -> None:
    assert times(TEXT, TEXT, TEXT) == 1
    assert times(TEXT) == 0


def test_again_for_another_text(places: Places) -> None:
    assert times(TEXT, "else", TEXT) == 3


def test_a_damaged_file_is_made_anew(places: Places) -> None:
    def damage() -> None:
        (file,) = places[1].iterdir()
        file.write_bytes(file.read_bytes()[:-5])

    assert times(TEXT, TEXT, before=damage) == 2


def test_only_the_packages_own_are_kept(
    places: Places, plan: Callable[..., LaunchPlan], tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "_functions.sh.j2").write_text("# of the site\n")
    first = render.render_script(plan(), [own])
    kept = {file.name: file.stat().st_mtime_ns for file in places[1].iterdir()}
    shipped = [file for file in first.templates if file.shipped]
    assert len(kept) == len(shipped) == len(first.templates) - 1
    render._environment.cache_clear()
    assert render.render_script(plan(), [own]) == first
    assert {file.name: file.stat().st_mtime_ns for file in places[1].iterdir()} == kept
