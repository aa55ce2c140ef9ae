"""Which files of a working folder a host gets."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hpc_train.errors import SubmitError
from hpc_train.submissions.hosts.copied_files import MOST_MIB, files_to_copy

FILES = ("train.py", "pkg/model.py", "data/big.bin", "results/j/run.json", ".venv/bin/python")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "link.py").symlink_to("train.py")
    return tmp_path


def test_without_git_all_but_results_and_environments(work: Path) -> None:
    found = files_to_copy(work, work / "results")
    assert found == ["data/big.bin", "link.py", "pkg/model.py", "train.py"]


def test_with_git_what_it_does_not_ignore_also_if_it_is_new(work: Path) -> None:
    subprocess.run(["git", "init", "-q", work], check=True)
    (work / ".gitignore").write_text("data\n.venv\n")
    subprocess.run(["git", "-C", work, "add", "train.py", "pkg/model.py"], check=True)
    (work / "pkg/model.py").unlink()
    found = files_to_copy(work, work / "results")
    assert found == [".gitignore", "link.py", "train.py"]
    assert files_to_copy(work / "pkg", work / "results") == []


def test_a_folder_of_data_is_refused(work: Path) -> None:
    with (work / "data/big.bin").open("wb") as sparse:
        sparse.truncate((MOST_MIB << 20) + 1)
    with pytest.raises(SubmitError, match=f"at most {MOST_MIB} MiB are copied to a host"):
        files_to_copy(work, work / "results")
