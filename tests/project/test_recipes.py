"""The Spack package and the EasyBuild easyconfig require what hpctrain requires."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from hpc_train.extras import EXTRAS
from hpc_train.version import VERSION

ROOT = Path(__file__).resolve().parents[2]
CENTRE = ROOT / "examples" / "centre"
SPACK = CENTRE / "spack_repo" / "hpctrain" / "packages" / "py_hpctrain" / "package.py"
(EASYBUILD,) = CENTRE.glob("easybuild/*.eb")
# Spack's repository has no hyperscan; a training script runs with the torch of its job, and jobs of
# AWS are not submitted from a module of a cluster.
IN_SPACK = EXTRAS.keys() - {"fast"}
IN_EASYBUILD = EXTRAS.keys() - {"fast", "torch", "sagemaker"}
# Modules with several packages, as the comments of the easyconfig say.
BUNDLES = {
    "Python-bundle-PyPI": {"click": "8.2.1", "jinja2": "3.1.6", "rich": "14.1.0"},
    "SciPy-bundle": {"pandas": "2.3.1", "scipy": "1.16.1"},
    "Arrow": {"pyarrow": "22.0.0"},
}


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    tomllib = pytest.importorskip("tomllib")
    whole: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (backend,) = whole["build-system"]["requires"]
    return {**whole["project"], "backend": backend}


def directives(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the first argument and the options of each call in the Spack package."""
    for node in ast.walk(ast.parse(SPACK.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            options = {word.arg: ast.literal_eval(word.value) for word in node.keywords if word.arg}
            yield ast.literal_eval(node.args[0]), options


def spec(text: str) -> str:
    """Return a requirement as Spack writes it: `>=1.5.2,<1.6` is `@1.5.2:1.5`."""
    requirement = Requirement(text)
    limits = {one.operator: one.version for one in requirement.specifier}
    *first, last = limits["<"].split(".") if "<" in limits else ("",)
    upper = ".".join([*first, str(int(last) - 1)]) if last else ""
    return f"py-{requirement.name.lower()}@{limits['>=']}:{upper}"


def test_spack_requires_the_same(project: dict[str, Any]) -> None:
    found = {(words, options.get("when")) for words, options in directives("depends_on")}
    extras = project["optional-dependencies"]
    added = {(spec(one), f"+{name}") for name in IN_SPACK for one in extras[name]}
    core = {(spec(one), None) for one in (*project["dependencies"], project["backend"])}
    python = f"python@{project['requires-python'].removeprefix('>=')}:"
    assert found == {*core, *added, (python, None)}
    assert {name for name, _ in directives("variant")} == IN_SPACK
    assert [name for name, _ in directives("version")] == [VERSION]
    assert [name for name, _ in directives("license")] == [project["license"]]


def easyconfig() -> dict[str, Any]:
    """Return the parameters of the easyconfig, a file in Python."""
    constants = ("SOURCE_PY3_WHL",)
    found: dict[str, Any] = dict.fromkeys(constants, "")
    exec(compile(EASYBUILD.read_text(), EASYBUILD.name, "exec"), found)  # noqa: S102
    return found


def test_easybuild_has_what_is_required(project: dict[str, Any]) -> None:
    recipe = easyconfig()
    modules = {name: version for name, version, *_ in recipe["dependencies"]}
    single = modules | {name: version for name, version, *_ in recipe["exts_list"]}
    have = {name.lower(): version for name, version in single.items() if name not in BUNDLES}
    for name in BUNDLES:
        assert name in modules
        have |= BUNDLES[name]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(one for name in IN_EASYBUILD for one in extras[name])]
    for requirement in map(Requirement, wanted):
        assert have[requirement.name.lower()] in requirement.specifier, requirement
    assert Version(modules["Python"]) in SpecifierSet(project["requires-python"])
    assert have["hpctrain"] == recipe["version"] == VERSION
    toolchain = recipe["toolchain"]
    assert EASYBUILD.stem == f"hpctrain-{VERSION}-{toolchain['name']}-{toolchain['version']}"


def test_easybuild_has_nothing_else(project: dict[str, Any]) -> None:
    recipe = easyconfig()
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(one for name in IN_EASYBUILD for one in extras[name])]
    names = {Requirement(one).name.lower() for one in wanted} | {"hpctrain", "python"}
    listed = {name for name, *_ in (*recipe["dependencies"], *recipe["exts_list"])}
    assert {name.lower() for name in listed - BUNDLES.keys()} <= names
    (builder,) = (one for one in recipe["builddependencies"] if one[0] == "hatchling")
    assert builder[1] in Requirement(project["backend"]).specifier


def test_no_address_is_named() -> None:
    texts = [path.read_text() for path in (SPACK, EASYBUILD)]
    assert [re.findall(r"\w+://\S{1,80}", text) for text in texts] == [[], []]
