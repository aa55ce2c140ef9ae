"""What goes wrong with machines by ssh: keys, users, disks; each says so, and leaves nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.base.data_folders import data_file
from tests.end_to_end.host_user import WAIT, HostsUser

pytestmark = [pytest.mark.ssh]


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Path]:
    """Return a folder for connections of their own; a path of a socket must be short."""
    folder = Path("/run", f"h{tmp_path.name[-20:]}")
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def test_a_host_that_refuses_is_named_before_anything_is_written(
    mine: HostsUser, runtime: Path
) -> None:
    lab, folder = mine.lab.folder, mine.user.folder
    # Another key than that of the user.
    shutil.copy(lab / "host1" / "key", folder / "key")
    config = (lab / "ssh_config").read_text().replace(f"{lab}/key\n", f"{folder}/key\n")
    (folder / "ssh_config").write_text(config)
    (folder / "ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {folder}/ssh_config "$@"\n')
    (folder / "ssh").chmod(0o755)
    path = f"{folder}:{mine.user.environment['PATH']}"
    words = ("submit", mine.job("true"), "--site", "lab-hosts")
    done = mine.user.hpctrain(*words, PATH=path, XDG_RUNTIME_DIR=str(runtime))
    assert done.returncode == 2
    assert "2 hosts are needed, and 0 of 2 can be used" in done.stderr
    assert "host2: " in done.stderr and "Permission denied" in done.stderr
    assert not (folder / "results").exists()


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
