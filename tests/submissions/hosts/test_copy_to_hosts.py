"""Copies to a host: by rsync, or as a tar where it cannot; a full disk is neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.submissions.hosts.queue_runner import Copy, put
from hpc_train.submissions.hosts.run_on_hosts import fault
from hpc_train.submissions.hosts.started_hosts import StartedHost
from tests.submissions.hosts.test_transport import ssh, write

__all__ = ["ssh"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("echo 'bash: rsync: command not found' >&2; exit 127", ""),
        ("echo 'rsync: connection unexpectedly closed' >&2; exit 12", ""),
        ("echo 'rsync: write failed: No space left on device (28)' >&2; exit 12", "No space left"),
        ("echo 'rsync: permission denied (13)' >&2; exit 23", "permission denied"),
    ],
)
def test_a_tar_replaces_rsync_only_where_it_is_missing(
    ssh: Path, tmp_path: Path, text: str, problem: str
) -> None:
    write(tmp_path / "rsync", text)
    for name in ("here", "run"):
        (tmp_path / name).mkdir()
    (tmp_path / "here" / "a").write_text("content")
    copy = Copy(
        folder=tmp_path / "here",
        target=str(tmp_path / "there"),
        shared=False,
        files=("a",),
        script=b"true\n",
    )
    host = StartedHost(name="gpu1", address="", folder=str(tmp_path / "run"), boot="")
    said = fault(put(host, copy))
    assert problem in said
    assert bool(said) == bool(problem)
    assert (tmp_path / "there" / "a").exists() == (not problem)
