"""The wheel, alone with its dependencies in an empty environment: what a user installs."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path

import pytest

from hpc_train.base.extras import EXTRAS
from tests.project import installed
from tests.project.core_commands import ROOT

pytestmark = pytest.mark.process

MOST_BYTES = 60_000_000


def run(
    command: Sequence[str | Path], cwd: Path | None = None, env: dict[str, str] | None = None
) -> str:
    """Run a command; return its output, or fail with all that it printed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd, env=env)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--wheel", "--no-isolation", "--outdir", str(folder)]
    run([sys.executable, "-m", "build", *options, ROOT])
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program folder of a fresh environment: the wheel, and what it requires."""
    folder = tmp_path_factory.mktemp("alone") / "venv"
    run([sys.executable, "-m", "venv", folder])
    installed.copy(installed.required(installed.of_wheel(wheel)), packages_of(folder / "bin"))
    # Without an index pip fails if a requirement is not met. To compile all takes long.
    options = ["--quiet", "--no-compile", "--no-index"]
    run([folder / "bin" / "python", "-m", "pip", "install", *options, wheel])
    return folder / "bin"


def packages_of(programs: Path) -> Path:
    (found,) = programs.parent.glob("lib/python*/site-packages")
    return found


@pytest.fixture(scope="module")
def environment(programs: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    path = os.pathsep.join([str(programs), os.environ.get("PATH", os.defpath)])
    return {**kept, "PATH": path}


def test_wheel_holds_templates_and_profiles_and_nothing_of_the_checkout(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "hpc_train/py.typed" in names
    profiles = ROOT / "site_profiles"
    for profile in profiles.rglob("*.yaml"):
        assert f"hpc_train/_data/site_profiles/{profile.relative_to(profiles)}" in names
    for template in (ROOT / "templates").iterdir():
        assert f"hpc_train/_data/templates/{template.name}" in names
    pages = {f"hpc_train/_data/docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    assert {name for name in names if "/docs/" in name} == pages
    for data in (ROOT / "hpc_train" / "data").rglob("*.yaml"):
        assert data.relative_to(ROOT).as_posix() in names
    for part in ("page.html.j2", "runs.html.j2", "page.css", "page.js"):
        assert f"hpc_train/reports/page/{part}" in names
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith((".data", ".dist-info"))} == {"hpc_train"}
    shared = [name.partition(".data/")[2] for name in names if ".data/" in name]
    assert shared == ["data/share/man/man1/hpctrain.1"]


def test_the_extras_are_not_installed(programs: Path) -> None:
    names = sorted({name for extra in EXTRAS.values() for name in extra})
    probe = f"import importlib.util as u; print([n for n in {names} if u.find_spec(n)])"
    assert run([programs / "python", "-c", probe]).strip() == "[]"


def test_the_core_is_small(programs: Path, wheel: Path) -> None:
    (own,) = distributions(name="hpctrain", path=[str(packages_of(programs))])
    assert installed.size([own]) > 1_000_000
    assert installed.size([own, *installed.required(installed.of_wheel(wheel))]) <= MOST_BYTES


def test_render_an_example(programs: Path, environment: dict[str, str], tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    command = [str(programs / "hpctrain"), "render", "examples/digits/job.yaml"]
    assert run(command, cwd=tmp_path, env=environment).startswith("#!")
