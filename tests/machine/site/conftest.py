"""A place where profiles lie and nobody else's do."""

from pathlib import Path

import pytest

from hpc_train.base import data_folders


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the user's profiles; nothing of this machine is on the search path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HPCTRAIN_SITE_PATH", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(data_folders, "_SYSTEM", tmp_path / "system")
    (tmp_path / "own").mkdir()
    return tmp_path / "own"
