"""The files of a checkpoint are whole, or the first that is not is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.workload.checkpoint_files import damage, write_sums

RANKS = 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the files of a checkpoint of two ranks."""
    for name in (".metadata", "__0_0.distcp", "__1_0.distcp"):
        (tmp_path / name).write_bytes(name.encode() * 100)
    for rank in range(RANKS):
        write_sums(tmp_path, rank, RANKS)
    return tmp_path


def damages(folder: Path) -> list[str]:
    return [damage(folder, rank, RANKS) for rank in range(RANKS)]


def test_a_whole_checkpoint_has_no_damage(folder: Path) -> None:
    assert damages(folder) == ["", ""]


@pytest.mark.parametrize("rank", range(RANKS))
def test_without_the_files_of_a_rank_it_is_damaged(folder: Path, rank: int) -> None:
    for path in (*folder.glob(f"{rank}-*"), *folder.glob(f"__{rank}_*")):
        path.unlink()
    assert damages(folder) == ["it has the checksums of 1 of 2 ranks"] * RANKS


def test_without_any_checksums_it_is_damaged(folder: Path) -> None:
    for path in folder.glob("*.crc32"):
        path.unlink()
    assert damages(folder) == ["it has the checksums of 0 of its ranks"] * RANKS


def test_without_metadata_it_is_damaged(folder: Path) -> None:
    (folder / ".metadata").unlink()
    assert any(".metadata" in found or "no metadata" in found for found in damages(folder))


@pytest.mark.parametrize("name", [".metadata", "__0_0.distcp", "__1_0.distcp"])
def test_each_file_is_read_by_one_rank(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[7] ^= 1
    (folder / name).write_bytes(content)
    assert sorted(damages(folder)) == ["", f"{name} has another CRC-32 than when it was written"]
