"""The processes among which the tests are spread: each has a lab of its own, where it may."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PRIVATE = ROOT / "tests/private_namespaces.sh"
WITH_A_LAB = ("tests/lab/", "tests/end_to_end/", "tests/project/test_tour.py")


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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Spread the tests over processes by file, and give all that share a lab to one.

    In the order of collection: a file of many tests takes not the longest.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Files(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            shares = file.startswith(WITH_A_LAB) and not have_private_namespaces()
            return "lab" if shares else file

    config.option.loadscopereorder = False
    return Files(config, log)
