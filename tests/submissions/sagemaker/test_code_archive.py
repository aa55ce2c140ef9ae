from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from hpc_train.errors import StoreError
from hpc_train.submissions.sagemaker import code_archive
from hpc_train.submissions.sagemaker.code_archive import pack


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = (
        "train.py",
        "lib/model.py",
        ".git/config",
        "lib/__pycache__/model.pyc",
        "env/pyvenv.cfg",
        "env/bin/python",
        "results/a/run.json",
        ".hidden/settings",
    )
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "run.sh").touch(mode=0o755)
    (tmp_path / "link.py").symlink_to("train.py")
    (tmp_path / "dangling").symlink_to("nothing")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def members(content: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return {one.name: one for one in archive.getmembers()}


def test_sources_without_results_and_environments(folder: Path) -> None:
    found = members(pack(folder, folder / "results").content)
    names = [".hidden/settings", "lib/model.py", "link.py", "run.sh", "train.py"]
    assert sorted(found) == names
    assert found["run.sh"].mode == 0o755
    assert found["link.py"].isfile()


def test_the_same_files_are_the_same_bytes(folder: Path) -> None:
    first = pack(folder, folder / "results")
    os.utime(folder / "train.py", (1, 1))
    assert pack(folder, folder / "results") == first
    (folder / "train.py").write_text("other")
    assert pack(folder, folder / "results").digest != first.digest


def test_data_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_archive, "MOST_BYTES", 1 << 20)
    (folder / "data.bin").write_bytes(bytes(2 << 20))
    with pytest.raises(StoreError, match=r"more than 1 MiB, the last file is data\.bin") as failure:
        pack(folder, folder / "results")
    assert "sagemaker.inputs" in failure.value.hint
