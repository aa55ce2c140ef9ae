"""What a checkpoint has of one process, and what belongs to another optimiser."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402  # torch is an extra

from hpc_train.trainer import checkpoint  # noqa: E402
from tests.trainer.test_checkpoint import Training  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*weights_only.*")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCTRAIN_CHECKPOINTS", str(tmp_path / "ckpt"))


def test_a_model_that_is_copied_to_gpus_has_its_own_names() -> None:
    training = Training()
    training.step()
    training.save(1)
    copied = Training()
    copied.optimizer.param_groups[0]["lr"] = 5.0
    assert checkpoint.resume(nn.DataParallel(copied.model), copied.optimizer) == 1
    assert copied.optimizer.param_groups[0]["lr"] == 0.1
    assert torch.equal(copied.model[0].weight, training.model[0].weight)


def test_the_values_of_rank_0_can_be_read_alone() -> None:
    training = Training()
    training.step()
    training.save(1, batch=8)
    assert checkpoint.saved_values(1) == {"batch": 8}
