"""A twin comes up, is left alone, is made anew when its profile changes, and leaves nothing."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.lab.daemons import is_alive
from hpc_train.lab.twins.start_and_stop import FOLDERS, Twin, is_running, read, stop
from tests.conftest import ROOT, refuse
from tests.lab.conftest import Hpctrain

pytestmark = pytest.mark.slurm

NAME = "hpctrain-test-site"
PROFILE = f"""\
schema: 1
name: {NAME}
description: d
scheduler: slurm
launchers: {{default: srun, allowed: [srun]}}
partitions:
  - {{name: small, max_nodes: 2, max_gpus: 4, gpus_per_node: 4, select: {{partition: gpu}}}}
  - {{name: large, min_nodes: 3, max_nodes: 9, gpus_per_node: 4, select: {{partition: gpu}}}}
"""


# The end of the first process in the namespace ends the daemons.
_NAMESPACES = ("--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child")
_ONLY_LOOPBACK = f"""
mount -t tmpfs tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /var/tmp
ip link set lo up
"$1" -m hpc_train lab twin "$2"
SLURM_CONF={FOLDERS}/{NAME}/slurm.conf sbatch --test-only -pgpu --time=5 --qos=Fast --wrap=true
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        refuse("a twin needs root")
    path = tmp_path / f"{NAME}.yaml"
    path.write_text(PROFILE)
    yield path
    stop(NAME)


def up(hpctrain: Hpctrain, site: Path, words: str) -> Twin:
    done = hpctrain("twin", str(site))
    assert done.returncode == 0, done.stderr
    assert words in done.stdout
    twin = read(NAME)
    assert twin is not None
    assert is_running(twin)
    return twin


def asked(twin: Twin, *options: str, prefix: tuple[str, ...] = ()) -> str:
    done = subprocess.run(
        [*prefix, "sbatch", "--test-only", "--partition=gpu", "--time=5", *options, "--wrap=true"],
        capture_output=True,
        text=True,
        env={**os.environ, "SLURM_CONF": twin.slurm_conf},
        timeout=240,
    )
    return done.stderr


def test_what_two_partitions_of_the_profile_take_together(hpctrain: Hpctrain, site: Path) -> None:
    twin = up(hpctrain, site, "without accounting; started in")
    assert "to start at" in asked(twin, "-N1", "--gpus-per-node=4")
    assert "to start at" in asked(twin, "-N9", "--gpus-per-node=4")
    assert "GPUs of all nodes = 8, but small has at most 4" in asked(
        twin, "-N2", "--gpus-per-node=4"
    )
    said = asked(twin, "-N10", "--gpus-per-node=4")
    assert "nodes = 10, but small has at most 2; nodes = 10, but large has at most 9" in said


def test_a_changed_profile_makes_it_anew(hpctrain: Hpctrain, site: Path) -> None:
    first = up(hpctrain, site, "started in")
    assert up(hpctrain, site, "already running") == first
    assert NAME in hpctrain("twin").stdout
    site.write_text(PROFILE.replace("max_nodes: 9", "max_nodes: 10"))
    second = up(hpctrain, site, "started in")
    assert not any(is_alive(daemon) for daemon in first.daemons)
    assert "to start at" in asked(second, "-N10")


def test_with_a_quality_of_service(hpctrain: Hpctrain, site: Path) -> None:
    site.write_text(f"{PROFILE}qos: [{{name: Fast, max_time: 10m}}]\n")
    twin = up(hpctrain, site, "with accounting; started in")
    assert "to start at" in asked(twin, "-N1", "--qos=Fast")
    assert "QOSMaxWall" in asked(twin, "-N1", "--qos=Fast", "--time=11")
    assert "Invalid qos" in asked(twin, "-N1", "--qos=slow")
    assert hpctrain("twin", "--down", NAME).stdout == f"the twin of {NAME} was stopped\n"
    assert not any(is_alive(daemon) for daemon in twin.daemons)
    assert not Path(twin.place.folder).exists()
    assert read(NAME) is None
    assert hpctrain("twin", "--down", NAME).stdout == f"{NAME} has no twin\n"


def test_an_account_needs_the_suffix_of_its_partition(hpctrain: Hpctrain, site: Path) -> None:
    site.write_text(PROFILE.replace("select: {", "select: {account_suffix: _g, "))
    twin = up(hpctrain, site, "  accounts: any account is accepted")
    assert "to start at" in asked(twin, "-N1", "--account=AB12_g")
    assert "account = AB12, but small needs _g at its end" in asked(twin, "-N1", "--account=AB12")


def test_any_user_of_the_machine(hpctrain: Hpctrain, site: Path) -> None:
    site.write_text(f"{PROFILE}qos: [{{name: Fast, max_time: 10m}}]\n")
    twin = up(hpctrain, site, "with accounting")
    mine = ("--qos=Fast", "--account=mine")
    # Not the user nobody, whom Slurm 26.05 does not resolve.
    other = ("setpriv", "--reuid=daemon", "--clear-groups")
    assert "to start at" in asked(twin, "-N1", *mine, prefix=other)
    assert "QOSMaxWall" in asked(twin, "-N1", *mine, "--time=11", prefix=other)


def test_status_prints_what_twins_assume(hpctrain: Hpctrain, site: Path) -> None:
    up(hpctrain, site, "  memory of a node of small, large: unknown; not limited\n")
    status = hpctrain("status").stdout
    assert f"twin of {NAME}: source {FOLDERS}/{NAME}/env\n" in status
    assert "  memory of a node of small, large: unknown; not limited\n" in status
    listed = {one["site"]: one for one in json.loads(hpctrain("status", "--json").stdout)["twins"]}
    assert listed[NAME]["env_file"] == f"{FOLDERS}/{NAME}/env"
    assert "memory of a node of small, large: unknown; not limited" in listed[NAME]["assumptions"]


def test_with_only_the_loopback_interface(site: Path) -> None:
    site.write_text(f"{PROFILE}qos: [{{name: Fast, max_time: 10m}}]\n")
    done = subprocess.run(
        ["unshare", *_NAMESPACES, "sh", "-ec", _ONLY_LOOPBACK, "sh", sys.executable, str(site)],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=ROOT,
    )
    assert "with accounting; started in" in done.stdout, done.stderr
    assert "to start at" in done.stderr


def test_a_daemon_that_does_not_come_up(hpctrain: Hpctrain, site: Path, tmp_path: Path) -> None:
    broken = tmp_path / "slurmctld"
    broken.write_text("#!/bin/sh\necho 'fatal: the moon is full' >&2\nexit 1\n")
    broken.chmod(0o755)
    done = hpctrain("twin", str(site), PATH=f"{tmp_path}:/usr/bin:/bin")
    assert done.returncode == 2
    assert "fatal: the moon is full" in done.stderr
    assert read(NAME) is None
    assert not Path(FOLDERS, NAME).exists()


def test_refusals(hpctrain: Hpctrain, site: Path) -> None:
    nobody = ("setpriv", "--reuid=65534", "--clear-groups")
    assert "needs root" in hpctrain("twin", "slurm-generic", prefix=nobody).stderr
    assert "has no Slurm" in hpctrain("twin", "local").stderr
    assert "slurm-generic" in hpctrain("twin", "slurm-generik").stderr
    done = hpctrain("twin", str(site), PATH="/nonexistent")
    assert "apt-get install slurm-client" in done.stderr
