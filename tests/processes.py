"""The processes among which the tests are spread: each has a lab of its own, where it may."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PRIVATE = ROOT / "tests/private_namespaces.sh"
# In the order in which they are begun: those that take longest first.
WITH_A_LAB = ("tests/project/test_tour.py", "tests/end_to_end/", "tests/lab/")
# Stands for all their files where there can be only one lab.
SHARED = "lab"


@cache
def have_private_namespaces() -> bool:
    """Whether the processes have, or may have, a network and a /run of their own."""
    if "PRIVATE_NAMESPACES" in os.environ:
        return True
    tried = subprocess.run([PRIVATE, "--", "true"], capture_output=True, check=False)
    return tried.returncode == 0


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[object]) -> None:
    """Start each process in namespaces of its own, where that is permitted."""
    import execnet

    if not have_private_namespaces():
        return
    kept = (ROOT, sys.prefix, config._tmp_path_factory.getbasetemp())  # type: ignore[attr-defined]
    command = shlex.join([str(PRIVATE), *map(str, kept), "--", sys.executable])
    specs[:] = [execnet.XSpec(f"popen//python={command}") for _ in specs]


def has_a_lab(file: str) -> bool:
    """Whether tests of a file, or the tests that share a lab, need one."""
    return file == SHARED or file.startswith(WITH_A_LAB)


def unfinished(files: Mapping[str, Mapping[str, bool]]) -> list[str]:
    """Return the files of which a test has not ended yet."""
    return [file for file, tests in files.items() if not all(tests.values())]


def next_file(waiting: Iterable[str], *, labs: int, most: int) -> str:
    """Return the file that a process runs next, where others have `labs` labs.

    At most `most` have one at a time, as long as there is something else: tests of a lab mostly
    wait, and those beside them have the cores meanwhile.
    """
    files = list(waiting)
    return next((file for file in files if has_a_lab(file) == (labs < most)), files[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Spread the tests over processes by file, and give all that share a lab to one.

    In the order of collection: a file of many tests takes not the longest.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Files(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            # Its few tests take long, and need nothing of one another.
            if file.startswith("tests/net/"):
                return nodeid
            shares = file.startswith(WITH_A_LAB) and not have_private_namespaces()
            return SHARED if shares else file

        def _assign_work_unit(self, node: object) -> None:
            others = [files for one, files in self.assigned_work.items() if one is not node]
            labs = sum(any(map(has_a_lab, unfinished(files))) for files in others)
            chosen = next_file(self.workqueue, labs=labs, most=(self.numnodes + 1) // 2)
            self.workqueue.move_to_end(chosen, last=False)
            super()._assign_work_unit(node)

    config.option.loadscopereorder = False
    return Files(config, log)
