import os
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402  # torch is an extra

from hpc_train.trainer import checkpoint, stop_request  # noqa: E402
from hpc_train.trainer.checkpoint import CheckpointError  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*weights_only.*")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HPCTRAIN_CHECKPOINTS", str(tmp_path / "ckpt"))
    monkeypatch.setattr(stop_request, "_stop", False)
    before = signal.getsignal(signal.SIGUSR1)
    yield tmp_path / "ckpt"
    signal.signal(signal.SIGUSR1, before)


class Training:
    """A model with dropout, so that its result depends on the generators."""

    def __init__(self, width: int = 4) -> None:
        torch.manual_seed(0)
        random.seed(0)
        self.model = nn.Sequential(nn.Linear(3, width), nn.Dropout(0.5), nn.Linear(width, 1))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.1)

    def step(self) -> float:
        loss = self.model(torch.randn(8, 3)).square().mean() * (1 + random.random())  # noqa: S311
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def save(self, step: int, **own: Any) -> Path:
        return checkpoint.save(step, self.model, self.optimizer, own)

    def async_save(self, step: int) -> Path:
        return checkpoint.async_save(step, self.model, self.optimizer)

    def weights(self) -> list[list[float]]:
        return [value.flatten().tolist() for value in self.model.parameters()]

    def resume(self, own: dict[str, Any] | None = None) -> int:
        return checkpoint.resume(self.model, self.optimizer, own)


def test_a_resumed_training_is_the_undisturbed_one_bit_for_bit() -> None:
    whole = Training()
    expected = [whole.step() for _ in range(6)]
    first = Training()
    begun = [first.step() for _ in range(3)]
    first.save(3, seen=[1, 2])
    second, own = Training(), dict[str, Any]()
    torch.manual_seed(99)
    random.seed(99)
    assert second.resume(own) == 3
    assert own == {"seen": [1, 2]}
    assert begun + [second.step() for _ in range(3)] == expected
    for mine, other in zip(second.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_the_last_two_remain(folder: Path) -> None:
    training = Training()
    training.step()
    for step in (1, 2, 10):
        training.save(step)
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["step", "step-0000000002", "step-0000000010"]
    assert (folder / "step").read_text() == "10\n"


@pytest.mark.parametrize("kind", ["cut", "changed", "gone", "no-metadata"])
def test_a_damaged_checkpoint_is_left_out(
    kind: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    training = Training()
    training.step()
    training.save(1)
    training.step()
    newest = training.save(2)
    data = newest / "__0_0.distcp"
    content = bytearray(data.read_bytes())
    if kind == "cut":
        data.write_bytes(content[:-9])
    elif kind == "changed":
        content[len(content) // 2] ^= 1
        data.write_bytes(content)
    elif kind == "gone":
        data.unlink()
    else:
        (newest / ".metadata").unlink()
    assert Training().resume() == 1
    assert f"checkpoint {newest} is damaged and left out: " in capsys.readouterr().err


def test_a_checkpoint_that_was_being_written_is_no_checkpoint(folder: Path) -> None:
    training = Training()
    training.step()
    whole = training.save(1)
    whole.rename(folder / "step-0000000002.new")
    assert Training().resume() == 0
    training.save(3)
    assert not list(folder.glob("*.new"))


def test_a_folder_that_cannot_be_written_is_an_error(folder: Path) -> None:
    folder.write_text("a file")
    training = Training()
    training.step()
    with pytest.raises(CheckpointError, match="step-0000000001: not written: "):
        training.save(1)


class Disk:
    """Holds the write of a checkpoint, once all its bytes are written."""

    def __init__(self) -> None:
        self.asked, self.ready = threading.Event(), threading.Event()
        self.write = checkpoint.write_sums

    def write_sums(self, new: Path, rank: int, ranks: int) -> None:
        self.asked.set()
        assert self.ready.wait(240)
        self.write(new, rank, ranks)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    held = Disk()
    monkeypatch.setattr(checkpoint, "write_sums", held.write_sums)
    yield held
    held.ready.set()
    checkpoint.finish()


def test_a_training_goes_on_while_its_state_is_written(disk: Disk, folder: Path) -> None:
    training = Training()
    training.step()
    saved = training.weights()
    training.async_save(1)
    assert disk.asked.wait(240)
    training.step()
    assert training.weights() != saved
    assert [path.name for path in folder.iterdir()] == ["step-0000000001.new"]
    disk.ready.set()
    checkpoint.finish()
    resumed = Training()
    assert resumed.resume() == 1
    assert resumed.weights() == saved


def test_a_save_waits_for_the_one_that_is_under_way(disk: Disk, folder: Path) -> None:
    training = Training()
    training.step()
    training.async_save(1)
    assert disk.asked.wait(240)
    second = threading.Thread(target=training.save, args=(2,))
    second.start()
    assert [path.name for path in folder.iterdir()] == ["step-0000000001.new"]
    disk.ready.set()
    second.join()
    names = ["step", "step-0000000001", "step-0000000002"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert (folder / "step").read_text() == "2\n"


def test_a_failure_beside_the_training_is_printed_and_raised_once(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    training = Training()
    training.step()
    folder.write_text("a file")
    training.async_save(1)
    with pytest.raises(CheckpointError, match="step-0000000001: not written: "):
        checkpoint.finish()
    assert capfd.readouterr().out.count("no checkpoint: ") == 1
    checkpoint.finish()
    folder.unlink()
    training.async_save(2)
    checkpoint.finish()
    assert Training().resume() == 2


def test_usr1_asks_a_rank_to_stop() -> None:
    assert not checkpoint.should_stop()
    os.kill(os.getpid(), signal.SIGUSR1)
    assert checkpoint.should_stop()


def test_a_file_asks_a_rank_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCTRAIN_STOP_FILE", str(tmp_path / "stop"))
    assert not checkpoint.should_stop()
    (tmp_path / "stop").touch()
    assert checkpoint.should_stop()


def test_a_handler_of_the_program_stays() -> None:
    def own(*_: object) -> None:
        """Do nothing."""

    signal.signal(signal.SIGUSR1, own)
    checkpoint.should_stop()
    assert signal.getsignal(signal.SIGUSR1) is own
