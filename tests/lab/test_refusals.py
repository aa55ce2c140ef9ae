"""What keeps a lab from coming up is said in one line, and nothing is left of the attempt."""

import tempfile
from pathlib import Path

import pytest

from hpc_train.lab.lab import leftovers
from hpc_train.lab.settings import Settings
from tests.lab.conftest import Hpctrain

pytestmark = pytest.mark.slurm


def test_not_root(machine: None, hpctrain: Hpctrain) -> None:
    nobody = ("setpriv", "--reuid=65534", "--clear-groups")
    for command in ("up", "down"):
        done = hpctrain(command, prefix=nobody)
        assert done.returncode == 2
        assert done.stderr.splitlines()[0].endswith("so it needs root")


def test_missing_programs_are_named_together(machine: None, hpctrain: Hpctrain) -> None:
    done = hpctrain("up", PATH="/nonexistent")
    assert done.returncode == 2
    assert "srun, sinfo, squeue" in done.stderr
    assert "apt-get install slurm-client" in done.stderr


@pytest.mark.parametrize("right", ["sys_admin", "net_admin"])
def test_no_namespaces(machine: None, hpctrain: Hpctrain, right: str) -> None:
    done = hpctrain("up", prefix=("setpriv", f"--bounding-set=-{right}"))
    assert done.returncode == 2
    assert "namespaces cannot be created here" in done.stderr
    assert "--cap-add" in done.stderr


def test_a_folder_of_somebody_else(no_lab: None, hpctrain: Hpctrain) -> None:
    # Not pytest's folder, whose path may be longer than that of a lab may be.
    with tempfile.TemporaryDirectory() as folder:
        thesis = Path(folder, "thesis.tex")
        thesis.touch()
        done = hpctrain("up", "--dir", folder)
        assert thesis.exists()
    assert done.returncode == 2
    assert "is not the folder of a lab" in done.stderr
    assert "--dir" in done.stderr


@pytest.mark.parametrize("daemon", ["slurmctld", "slurmd"])
def test_a_daemon_that_does_not_come_up(
    no_lab: None, hpctrain: Hpctrain, tmp_path: Path, daemon: str
) -> None:
    done = hpctrain("up", **with_broken(daemon, tmp_path))
    assert done.returncode == 2
    assert f"hpctrain: {daemon}" in done.stderr
    assert "fatal: the moon is full" in done.stderr
    assert leftovers(Settings()) == ()


def with_broken(daemon: str, folder: Path) -> dict[str, str]:
    """Return variables with which a daemon fails at once and is otherwise the tested Slurm's."""
    broken = folder / daemon
    # Only `slurmctld -V` works, so that the version of the Slurm is known.
    broken.write_text(
        "#!/bin/sh\n"
        '[ "$1" != -V ] || { echo slurm 22.05.8; exit; }\n'
        "echo 'fatal: the moon is full' >&2\nexit 1\n"
    )
    broken.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}
