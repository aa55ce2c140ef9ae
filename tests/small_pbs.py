"""A small PBS for a test, in a folder of its own, with its commands on PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hpc_train.lab.pbs import small_pbs
from hpc_train.lab.pbs.placement import NodeSize

Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True, slots=True)
class RunningPbs:
    """A running small PBS, and the folder of its user."""

    folder: Path
    work: Path
    profile: Path

    def command(self, *words: str) -> Done:
        """Run a command of PBS in the folder of the user."""
        return subprocess.run(
            words, cwd=self.work, capture_output=True, text=True, timeout=240, check=False
        )

    def fault(self, name: str) -> Path:
        """Set a fault; the file that removes it."""
        path = self.folder / "faults" / name
        path.touch()
        return path

    def script(self, text: str, name: str = "job.sh") -> str:
        """Write a script; its name."""
        (self.work / name).write_bytes(f"#!/bin/bash\n{text}\n".encode())
        return name

    def submit(self, text: str, *options: str) -> str:
        """Submit a script, which has to work; the id of its job."""
        done = self.command("qsub", *options, self.script(text))
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.strip()


@contextmanager
def running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: NodeSize | None = None
) -> Iterator[RunningPbs]:
    """Start a small PBS; a socket needs a short path."""
    place = Path(tempfile.mkdtemp(prefix="hpct-pbs-"))
    folder = place / "pbs"
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    small_pbs.up(folder, size or NodeSize(nodes=2, ncpus=4))
    monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
    try:
        yield RunningPbs(folder, work, small_pbs.profile_path())
    finally:
        small_pbs.down(folder)
        shutil.rmtree(place)


@pytest.fixture
def pbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningPbs]:
    """Return a small PBS of two nodes with four cores each."""
    with running(tmp_path, monkeypatch) as found:
        yield found
