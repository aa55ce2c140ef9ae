"""Markers for tests that need programs of the system: skip with a reason, or fail when required."""

from __future__ import annotations

import os
import shutil

import pytest

# Daemons live where the PATH of an ordinary user does not look.
SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
NEEDS = {
    "mpi": {"mpirun": "openmpi-bin"},
    "slurm": {
        "slurmctld": "slurmctld",
        "slurmd": "slurmd",
        "sbatch": "slurm-client",
        "munged": "munge",
        "slurmdbd": "slurmdbd",
        "mariadbd": "mariadb-server",
        "ip": "iproute2",
        "tc": "iproute2",
    },
}


def missing(marker: str) -> str:
    """Return what a marked test lacks here, with the packages that have it; empty if nothing."""
    absent = {
        program: package
        for program, package in NEEDS[marker].items()
        if shutil.which(program, path=SEARCH_PATH) is None
    }
    if not absent:
        return ""
    packages = " ".join(dict.fromkeys(absent.values()))
    return f"{', '.join(absent)} not found; install {packages}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in NEEDS:
        reason = missing(marker) if item.get_closest_marker(marker) else ""
        if reason and os.environ.get("HPCTRAIN_REQUIRE_SLURM") == "1":
            pytest.fail(f"{reason} (HPCTRAIN_REQUIRE_SLURM=1)", pytrace=False)
        if reason:
            pytest.skip(reason)
