"""A Slurm of a prefix comes before the one on PATH, and is refused where it lacks a program."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hpc_train.base.errors import LabError
from hpc_train.lab.requirements import check_twin_programs
from hpc_train.lab.settings import Settings
from hpc_train.lab.slurm_programs import (
    VARIABLE,
    chosen_prefix,
    missing_in,
    search_path,
    shell_lines,
    slurm,
    version_of,
)


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    """Return a prefix with three programs that print where they are."""
    for name in ("bin/sbatch", "bin/scontrol", "sbin/slurmctld"):
        program = tmp_path / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho slurm-wlm 99.05.1-rc1 of {program}\n")
        program.chmod(0o755)
    return str(tmp_path)


@pytest.mark.parametrize("value", ["here", "/opt/a b", "/opt/a:b", "/opt/../etc", "/no/such/slurm"])
def test_refused_prefixes(value: str) -> None:
    with pytest.raises(LabError, match=VARIABLE):
        chosen_prefix({VARIABLE: value})


def test_its_programs_are_found_first(prefix: str) -> None:
    place = Settings(slurm_prefix=prefix)
    for program in ("sbatch", "slurmctld"):
        done = subprocess.run(slurm(place, program), capture_output=True, text=True, check=True)
        assert done.stdout.rstrip().endswith(f"{prefix}/{'s' * (program != 'sbatch')}bin/{program}")
    assert shutil.which("true", path=search_path(prefix)) == shutil.which("true")
    assert version_of(prefix) == "99.05.1-rc1"


def test_missing_programs_are_named(prefix: str) -> None:
    assert missing_in(prefix, ("sbatch", "slurmd", "slurmctld")) == ("slurmd",)
    with pytest.raises(LabError, match=f"{VARIABLE}={prefix}: .* slurmdbd, sacctmgr(?:\n|$)"):
        check_twin_programs(prefix, accounting=True)


def test_a_version_that_cannot_be_read(prefix: str) -> None:
    Path(prefix, "sbin/slurmctld").write_text("#!/bin/sh\necho 'no such library' >&2; exit 1\n")
    with pytest.raises(LabError, match="slurmctld -V` failed: no such library"):
        version_of(prefix)


def test_env_file(prefix: str) -> None:
    assert shell_lines(Settings()) == "export SLURM_CONF=/var/tmp/hpctrain-lab/slurm.conf\n"
    shell = f"{shell_lines(Settings(slurm_prefix=prefix))} sbatch; echo ${VARIABLE}"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"slurm-wlm 99.05.1-rc1 of {prefix}/bin/sbatch", prefix]
