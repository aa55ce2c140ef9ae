"""Ways in which a checkpoint could be lost: by a damaged one, another node, a second save."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from hpc_train.trainer import checkpoint
from hpc_train.trainer.checkpoint import CheckpointError
from tests.trainer.test_checkpoint import Training

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

    monkeypatch.setattr(checkpoint, "of_rank_0", lambda names: names[1:])
    assert Training().resume() == 1


def test_a_checkpoint_that_another_rank_finds_damaged_is_loaded_by_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Training()
    training.step()
    for step in (1, 2):
        training.save(step)
    monkeypatch.setattr(
        checkpoint, "any_rank", lambda _: not (folder / "step-0000000002.damaged").exists()
    )
    assert Training().resume() == 1


def test_the_note_of_the_last_checkpoint_is_that_of_the_one_that_was_loaded(folder: Path) -> None:
    """Its step and time: the script of the job measures progress from there."""
    training = Training()
    training.step()
    first = training.save(1)
    (training.save(5) / ".metadata").unlink()
    assert (folder / "step").read_text() == "5\n"
    assert training.resume() == 1
    assert (folder / "step").read_text() == "1\n"
    assert (folder / "step").stat().st_mtime == pytest.approx(first.stat().st_mtime, abs=1e-3)
    step, saved = (folder / "resumed").read_text().split()
    assert step == "1"
    assert float(saved) == pytest.approx(first.stat().st_mtime, abs=1e-3)
    (first / ".metadata").unlink()
    assert training.resume() == 0
    assert not (folder / "step").exists()
    assert (folder / "resumed").read_text() == "0\n"


def test_of_another_number_of_ranks_the_values_of_a_rank_are_not_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    training = Training()
    training.step()
    training.save(1, position=7)
    own: dict[str, int] = {}
    monkeypatch.setattr(checkpoint, "rank_and_count", lambda: (0, 2))
    resumed = Training()
    assert resumed.resume(own) == 1
    assert (own, resumed.weights()) == ({}, training.weights())
    assert "of 1 ranks is resumed by 2: " in capsys.readouterr().err


def test_a_step_that_cannot_be_saved_again_is_put_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fails between the two renames."""
    training = Training()
    training.step()
    training.save(1)
    rename = Path.rename

    def fails(path: Path, target: Path) -> Path:
        if path.suffix == ".new":
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(CheckpointError, match="Input/output error"):
        training.save(1)
    assert [path.name for path in folder.glob("step-*")] == ["step-0000000001"]


def test_a_folder_that_the_nodes_do_not_share_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 0 writes the metadata, here on a disk that this rank does not see."""
    training = Training()
    training.step()
    saver = "hpc_train.trainer.checkpoint.state_dict_saver.save"
    monkeypatch.setattr(saver, lambda *_, **__: None)
    with pytest.raises(CheckpointError, match="all nodes must share the folder"):
        training.save(1)
