"""docs/architecture.md: the packages are there, and what it names exists."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "hpc_train"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CODE = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL))
# A file that a user has, not one of the package.
FILES = re.compile(r"[\w./*-]+\.(yaml|py|md|json|j2)")
PACKAGES = sorted(
    ".".join(path.parent.relative_to(PACKAGE).parts)
    for path in PACKAGE.rglob("__init__.py")
    if path.parent != PACKAGE
)
TOP = sorted(path.stem for path in PACKAGE.glob("[!_]*.py"))
NONE: dict[str, list[str]] = {"missing": [], "unknown": [], "twice": []}


def section(title: str) -> str:
    """Return the text below a heading, up to the next one of any level."""
    return re.split(r"^#", PAGE.partition(f"# {title}\n")[2], flags=re.MULTILINE)[0]


def differences(listed: list[str], defined: list[str]) -> dict[str, list[str]]:
    """Return what the page lacks, what it names that does not exist, and what it names twice."""
    return {
        "missing": sorted(set(defined) - set(listed)),
        "unknown": sorted(set(listed) - set(defined)),
        "twice": sorted({name for name in listed if listed.count(name) > 1}),
    }


def names_in(text: str) -> list[str]:
    """Return the dotted names in code, in order."""
    return re.findall(r"`(\w+(?:\.\w+)+)`", text)


def found(name: str) -> object:
    """Return the module, class, function or constant of a dotted name below the package."""
    parts = name.split(".")
    paths = [PACKAGE.joinpath(*parts[:end]) for end in range(len(parts) + 1)]
    depth = sum(path.is_dir() or path.with_suffix(".py").is_file() for path in paths[1:])
    thing: object = importlib.import_module(".".join(("hpc_train", *parts[:depth])))
    for attribute in parts[depth:]:
        thing = getattr(thing, attribute)
    return thing


def test_each_dotted_name_exists() -> None:
    names = {name for name in names_in(PAGE) if not FILES.fullmatch(name)}
    assert [name for name in names if found(name) is None] == []


def test_each_path_exists() -> None:
    paths = {name for name in CODE if re.fullmatch(r"[\w./-]+/[\w./-]*", name)}
    assert len(paths) > 10
    absent = [path for path in paths if not any((top / path).exists() for top in (ROOT, PACKAGE))]
    assert absent == []


def test_each_package_and_each_module_beside_them_is_on_the_page() -> None:
    named = re.findall(r"`([\w.]+)`", section("Packages"))
    assert differences(named, [*PACKAGES, *TOP]) == NONE
