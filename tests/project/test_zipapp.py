"""`make zipapp`: one file, run by a Python that has none of the packages."""

from __future__ import annotations

import ast
import os
import runpy
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path

import pytest

from hpc_train.version import VERSION
from tests.project import installed
from tests.project.core_commands import ROOT, Case, Ended, Start, check
from tests.project.repacked_wheels import repack
from tests.project.test_homes import STRANGER, isolates

pytestmark = pytest.mark.slow

START = ROOT / "examples" / "centre" / "zipapp" / "start.py"
VERSIONS = f"{sys.version_info[0]}.{sys.version_info[1]}"
PYTHON = Path(sys.base_prefix) / "bin" / f"python{VERSIONS}"
JOB = "command: [python3, -c, 'print(1)']\nlauncher: single\n"
COMMANDS = (
    *(Case("--help", "Usage: hpctrain"), Case("--version", f"hpctrain, version {VERSION}")),
    *(Case("site list", "local"), Case("site check local", "0 errors")),
    Case("render job.yaml --site local -o script.sh", ""),
    Case("lint script.sh", "nothing found"),
    Case("submit job.yaml --site local --wait", "COMPLETED"),
    *(
        Case("status", "COMPLETED"),
        Case("diagnose job", "SUCCESS"),
        Case("help install", "Install"),
    ),
)
MOUNT = 'mount -t tmpfs -o noexec tmp "$TMPDIR"; exec "$@"'
NOEXEC = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-euc", MOUNT, "sh")
# Of another Python, the name of the extensions differs.
OTHER = """
import importlib.machinery, runpy, sys
importlib.machinery.EXTENSION_SUFFIXES[:] = [".cpython-39-x86_64-linux-gnu.so"]
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
COUNT = """
import os, runpy, sys
opened = []
sys.addaudithook(lambda event, args: opened.append(args[0]) if event == "open" else None)
sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    cache = os.environ["XDG_CACHE_HOME"]
    found = [name for name in opened if str(name).startswith(cache)]
    files = [getattr(module, "__file__", None) for module in sys.modules.values()]
    modules = [name for name in files if name and name.startswith(cache)]
    sys.stderr.write(f"{len(found)} {len(modules)}")
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file that `make zipapp` builds, without a network, below a path with blanks."""
    wheels = tmp_path_factory.mktemp("wheels")
    for one in installed.required(distribution("hpctrain")):
        repack(one, wheels)
    file = tmp_path_factory.mktemp("the folder") / "hpctrain.pyz"
    words = [f"VENV={sys.prefix}", f"ZIPAPP={wheels}/hpctrain.pyz", f"PYTHONS={VERSIONS}", "zipapp"]
    env = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "MAKEFLAGS": ""}
    made = ["make", "-o", f"{sys.prefix}/.dev-installed", *words]
    done = subprocess.run(made, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (file.parent / "bin").mkdir()
    (file.parent / "bin" / "python3").symlink_to(PYTHON)
    return (wheels / "hpctrain.pyz").rename(file)


@pytest.fixture(scope="module")
def cache(archive: Path) -> Path:
    """Return the cache, after two processes started for the first time at once."""
    folder = archive.parent / "cache"
    env = environment(archive, XDG_CACHE_HOME=str(folder))
    words = [str(archive), "site", "show", "local"]
    running = [subprocess.Popen(words, env=env, stdout=subprocess.PIPE) for _ in range(2)]
    outputs = {process.communicate()[0] for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert len(outputs) == 1
    return folder


def environment(archive: Path, **added: str) -> dict[str, str]:
    """Return what `env -i` leaves, with the Python of this test first."""
    return {"PATH": f"{archive.parent / 'bin'}:/usr/bin:/bin", **added}


def starter(archive: Path, folder: Path, before: Sequence[str] = (), **added: str) -> Start:
    """Return a function that runs the file, as a program, in a folder."""

    def start(*words: str) -> Ended:
        argv, env = [*before, str(archive), *words], environment(archive, **added)
        done = subprocess.run(
            argv, cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    return start


def test_commands_run_without_an_environment(archive: Path, cache: Path, tmp_path: Path) -> None:
    start = starter(archive, tmp_path, XDG_CACHE_HOME=str(cache))
    (tmp_path / "job.yaml").write_text(JOB)
    for case in COMMANDS:
        check(start, case)
    (build,) = (cache / "hpctrain" / "zipapp").iterdir()
    assert build.name.startswith(f"{VERSION}-")
    assert build.stat().st_mode & 0o777 == 0o700


def test_a_start_opens_a_few_files_only(archive: Path, cache: Path, tmp_path: Path) -> None:
    start = starter(PYTHON, tmp_path, XDG_CACHE_HOME=str(cache))
    opened, modules = map(int, start("-c", COUNT, str(archive), "status").errors.split()[-2:])
    assert modules > 100
    assert opened < modules / 5


@pytest.mark.skipif(not isolates(), reason="no namespaces of users here")
def test_a_home_that_cannot_be_written(archive: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    (tmp_path / "job.yaml").write_text(JOB)
    start = starter(archive, tmp_path, STRANGER, HOME=str(home), TMPDIR=str(tmp_path))
    check(start, Case("submit job.yaml --site local --wait", "COMPLETED"))
    (build,) = tmp_path.glob("hpctrain-*-cpython-*")
    before = build.stat()
    check(start, Case("status", "COMPLETED"))
    assert build.stat() == before
    assert [*home.iterdir()] == []


@pytest.mark.skipif(not isolates(), reason="no namespaces of users here")
def test_without_a_place_for_programs_one_line_says_so(archive: Path, tmp_path: Path) -> None:
    folders = {"XDG_CACHE_HOME": "/proc/none", "TMPDIR": str(tmp_path)}
    done = starter(archive, tmp_path, NOEXEC, **folders)("site", "list")
    assert (done.code, done.output) == (2, ""), done
    assert ": mounted noexec; set XDG_CACHE_HOME to a folder for files" in done.errors
    assert done.errors.count("\n") == 1


def test_another_python_gets_one_sentence(archive: Path, tmp_path: Path) -> None:
    start = starter(PYTHON, tmp_path, TMPDIR=str(tmp_path))
    done = start("-c", OTHER, str(archive), "status")
    assert (done.code, done.output) == (2, "")
    assert done.errors.startswith(f"hpctrain: {archive} is for cpython-")
    assert " is cpython-39-x86_64-linux-gnu: start it with another Python" in done.errors
    assert done.errors.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
    ast.parse(START.read_text(), feature_version=(3, 6))


@pytest.mark.parametrize("change", ["mode", "owner", "link", "part"])
def test_a_folder_that_another_user_could_write_is_not_used(tmp_path: Path, change: str) -> None:
    is_usable = runpy.run_path(str(START))["is_usable"]
    folder = tmp_path / "build"
    folder.mkdir(mode=0o700)
    (folder / "modules").touch()
    assert is_usable(folder)
    if change == "mode":
        folder.chmod(0o770)
    elif change == "owner" and os.geteuid() == 0:
        os.chown(folder, 1, 1)
    elif change == "link":
        folder = tmp_path / "link"
        folder.symlink_to("build")
    else:
        (folder / "modules").unlink()
    assert not is_usable(folder)


def test_files_are_used_before_a_purge_removes_them(tmp_path: Path) -> None:
    keep = runpy.run_path(str(START))["keep"]
    aged = time.time() - 8 * 86400
    for name in ("modules", "template"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (aged, aged))
    keep(tmp_path)
    assert (tmp_path / "template").stat().st_mtime > aged + 86400
