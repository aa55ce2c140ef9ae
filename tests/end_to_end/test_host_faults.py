"""What goes wrong with machines by ssh: users, disks; each says so, and leaves nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.base.data_folders import data_file
from tests.end_to_end.host_user import WAIT, HostsUser

pytestmark = [pytest.mark.ssh]


def test_a_host_that_another_user_has_is_waited_for(mine: HostsUser) -> None:
    script = data_file("on_host.sh").read_text()
    (Path(mine.lab.folder) / "taken.sh").write_text(f"set -- take ~/r theirs 61000 9\n{script}")
    other = "HOME=/tmp/them setpriv --reuid=65534 --regid=65534 --clear-groups"
    mine.on("host1", "rm -rf /tmp/hpctrain-host; mkdir -p -m 777 /tmp/them")
    mine.on("host1", f"{other} mkdir -p /tmp/them/r/logs")
    taken = mine.on("host1", f"{other} bash -s <{mine.lab.folder}/taken.sh")
    assert "boot " in taken
    mine.submit(mine.job("echo done"))
    mine.user.until("j", lambda row: row["reason"] != "")
    row = mine.row()
    assert row["state"] == "PENDING"
    assert "host1 is in use by theirs of nobody" in row["reason"]
    mine.on("host1", r"printf 'end\0' 1<>/tmp/them/r/start")
    mine.wait("COMPLETED")
    mine.on("host1", "rm -rf /tmp/hpctrain-host /tmp/them")


@pytest.fixture
def small(mine: HostsUser) -> Iterator[HostsUser]:
    """Give one host a full disk for its runs."""
    mount = "mkdir -p ~/small && mount -t tmpfs -o size=64k small ~/small"
    for host in ("host1", "host2"):
        mine.on(host, mount if host == "host2" else "mkdir -p ~/small")
    yield mine
    mine.user.hpctrain("cancel", "j")
    mine.nothing_left()
    mine.on("host2", "umount -l ~/small")


def test_a_disk_that_fills_up_during_a_run_fails_it(small: HostsUser) -> None:
    site = small.profile("small", {"poll: 2s\n": "poll: 2s\nworkdir: ~/small\n"})
    program = (
        f'[ "$NODE_RANK" = 0 ] || {{ head -c 1M /dev/zero >$HPCTRAIN_RUN/big; exit 3; }}\n{WAIT}'
    )
    small.submit(small.job(program), site=site)
    row = small.wait("FAILED")
    assert "host2" in row["problem"]
    small.nothing_left()
