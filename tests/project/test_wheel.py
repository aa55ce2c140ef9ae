"""The wheel, alone with its dependencies in an empty environment: what a user installs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from hpc_train import __version__

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
JOB = """\
name: hello
command: [python, -c, "print('hello from the job')"]
launcher: single
"""


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
    """Return the program folder of a fresh environment that has the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("alone") / "venv"
    run([sys.executable, "-m", "venv", folder])
    # Of pandas and scipy most modules are never imported here; to compile all takes long.
    options = ["--quiet", "--no-compile"]
    run([folder / "bin" / "python", "-m", "pip", "install", *options, wheel])
    return folder / "bin"


@pytest.fixture
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
    for data in (ROOT / "hpc_train" / "data").rglob("*.yaml"):
        assert data.relative_to(ROOT).as_posix() in names
    for part in ("page.html.j2", "lookup.html.j2", "runs.html.j2", "page.css", "page.js"):
        assert f"hpc_train/reports/formats/page/{part}" in names
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"hpc_train"}


def test_torch_is_not_needed(programs: Path) -> None:
    probe = "import importlib.util as u; print(u.find_spec('torch') is None)"
    assert run([programs / "python", "-c", probe]).strip() == "True"


def test_version_and_sites(programs: Path, environment: dict[str, str], tmp_path: Path) -> None:
    command = programs / "hpctrain"
    assert __version__ in run([command, "--version"], cwd=tmp_path, env=environment)
    assert "local" in run([command, "site", "list"], cwd=tmp_path, env=environment)


def test_a_failure_is_recognised(
    programs: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "job.out").write_text("RuntimeError: CUDA error: invalid device ordinal\n")
    command = [str(programs / "hpctrain"), "diagnose", "job.out"]
    said = run(command, cwd=tmp_path, env=environment)
    assert said.startswith("FAILED  A process selected a GPU that is not visible to it\n")


def test_render_an_example(programs: Path, environment: dict[str, str], tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    command = [str(programs / "hpctrain"), "render", "examples/digits/job.yaml"]
    assert run(command, cwd=tmp_path, env=environment).startswith("#!")


def test_submit_a_job_in_an_empty_folder(
    programs: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    command = [str(programs / "hpctrain"), "submit", "job.yaml", "--wait"]
    run(command, cwd=tmp_path, env=environment)
    logs = "".join(log.read_text() for log in tmp_path.glob("results/hello/*/logs/*.out"))
    assert "hello from the job" in logs
