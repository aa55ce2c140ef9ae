"""A profile drafted from a live Slurm and a job on its nodes, used as it was written."""

import dataclasses
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.lab.daemons import namespace
from hpc_train.sites.load import load_site
from tests.conftest import Slurm
from tests.end_to_end.user import User

pytestmark = [pytest.mark.slurm]


@pytest.fixture
def stranger(user: User) -> User:
    """Return a user for whom the lab is any cluster: SLURM_CONF is all that he was told."""
    line = next(one for one in user.profile.read_text().splitlines() if "slurm_conf" in one)
    conf = Path(line.split()[1])
    return dataclasses.replace(user, environment={**user.environment, "SLURM_CONF": str(conf)})


@pytest.fixture
def without_ib() -> Iterator[None]:
    """Take the fast network of all nodes down."""
    inside = [("ip", "-n", namespace(f"lab{n}"), "link", "set", "ib0") for n in (1, 2, 3, 4)]
    for link in inside:
        subprocess.run([*link, "down"], check=True)
    yield
    for link in inside:
        subprocess.run([*link, "up"], check=True)


def test_an_interface_that_is_down_is_not_taken(stranger: User, without_ib: None) -> None:
    done = stranger.hpctrain("site", "init", "--probe", "-o", "slow.yaml")
    assert done.returncode == 0, done.stderr
    site = load_site(str(stranger.folder / "slow.yaml")).value
    assert site.network is not None and site.network.interfaces == ("eth0",)


def test_inside_an_allocation_no_new_job_is_made(stranger: User, slurm: Slurm) -> None:
    before = slurm("squeue", "--noheader", "--states=all", "--format=%i").split()
    argv = ["salloc", "--nodes=1", "--quiet", "python", "-m", "hpc_train"]
    done = subprocess.run(
        [*argv, "site", "init", "inside", "--probe", "-o", "inside.yaml"],
        cwd=stranger.folder,
        env=stranger.environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "interfaces: [ib0]" in (stranger.folder / "inside.yaml").read_text()
    after = slurm("squeue", "--noheader", "--states=all", "--format=%i").split()
    assert len(set(after) - set(before)) == 1


def test_the_draft_is_checked_against_the_cluster_and_tested(stranger: User, torch: None) -> None:
    """As the page on writing a profile has it."""
    done = stranger.hpctrain("site", "init", "drafted", "--probe", "-o", "drafted.yaml")
    assert done.returncode == 0, done.stderr
    for more in ((), ("--live",)):
        checked = stranger.hpctrain("site", "check", "./drafted.yaml", *more)
        assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "drafted and the cluster lab agree" in checked.stdout
    sizes = ("--nodes", "2", "--gpus-per-node", "0", "--largest", "64K")
    tested = stranger.hpctrain("bench", "allreduce", "--site", "./drafted.yaml", "--wait", *sizes)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "# Out of bounds values : 0 OK" in tested.stdout
