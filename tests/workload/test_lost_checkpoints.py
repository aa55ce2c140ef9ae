"""Ways in which a checkpoint could be lost: by a damaged one, another node, a second save."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from hpc_train.workload import checkpoint  # noqa: E402
from hpc_train.workload.checkpoint import CheckpointError  # noqa: E402
from tests.workload.test_checkpoint import Training  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*weights_only.*")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HPCTRAIN_CHECKPOINTS", str(tmp_path / "ckpt"))
    return tmp_path / "ckpt"


def test_a_damaged_checkpoint_takes_the_place_of_no_later_one(folder: Path) -> None:
    training = Training()
    training.step()
    training.save(1)
    (training.save(5) / ".metadata").unlink()
    assert training.resume() == 1
    checkpoint.save(2, training.model, training.optimizer, keep=1)
    names = sorted(path.name for path in folder.glob("step-*"))
    assert names == ["step-0000000002", "step-0000000005.damaged"]
    assert Training().resume() == 2


def test_all_ranks_resume_from_the_checkpoint_that_rank_0_sees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    training = Training()
    training.step()
    for step in (1, 2):
        training.save(step)

    def broadcast(names: list[list[str]], source: int) -> None:
        names[source] = ["step-0000000001"]

    group = SimpleNamespace(is_initialized=lambda: True, broadcast_object_list=broadcast)
    monkeypatch.setattr(checkpoint, "distributed", group)
    assert Training().resume() == 1


def test_a_step_that_is_saved_again_is_not_lost_between(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The removal of a large checkpoint takes long."""
    training = Training()
    training.step()
    training.save(1)

    remove = shutil.rmtree

    def removed(path: Path, **_: object) -> None:
        assert [one.name for one in folder.glob("step-*[0-9]")] == ["step-0000000001"]
        remove(path, ignore_errors=True)
        assert (folder / "step-0000000001").exists()

    monkeypatch.setattr(shutil, "rmtree", removed)
    training.save(1)
    monkeypatch.undo()
    assert [path.name for path in folder.glob("step-*")] == ["step-0000000001"]


def test_a_folder_that_the_nodes_do_not_share_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 0 writes the metadata, here on a disk that this rank does not see."""
    training = Training()
    training.step()
    saver = "hpc_train.workload.checkpoint_writing.state_dict_saver.save"
    monkeypatch.setattr(saver, lambda *_, **__: None)
    with pytest.raises(CheckpointError, match="all nodes must share the folder"):
        training.save(1)
