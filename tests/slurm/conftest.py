"""Programs named as Slurm's, so that what is asked of them can be read back."""

from pathlib import Path

import pytest

from tests.slurm.fake_slurm import Fake, FakeSlurm, programs

__all__ = ["Fake"]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Put a program on PATH, before whatever this machine has; its body is bash."""
    return programs(tmp_path / "bin", monkeypatch)


@pytest.fixture
def slurm(tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    """All of Slurm's commands that are used, with one queue."""
    return FakeSlurm(tmp_path / "slurm", fake, monkeypatch)
