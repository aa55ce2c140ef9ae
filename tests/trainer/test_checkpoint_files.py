"""The files of a checkpoint are whole, or the first that is not is named."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from torch import nn

from hpc_train.trainer.checkpoint import damage, write_sums
from hpc_train.trainer.optimizer import OptimizerChoice, Updates, loss_scaler

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


@pytest.mark.parametrize("rank", range(RANKS))
def test_without_the_files_of_a_rank_it_is_damaged(folder: Path, rank: int) -> None:
    for path in (*folder.glob(f"{rank}-*"), *folder.glob(f"__{rank}_*")):
        path.unlink()
    assert damages(folder) == ["it has the checksums of 1 of 2 ranks"] * RANKS


def test_without_any_checksums_it_is_damaged(folder: Path) -> None:
    for path in folder.glob("*.crc32"):
        path.unlink()
    assert damages(folder) == ["it has the checksums of 0 of its ranks"] * RANKS


def test_an_empty_checksum_file_is_damage(folder: Path) -> None:
    """Its rank's files are checked by nobody; a damaged one would be an EOFError of torch."""
    (folder / "1-of-2.crc32").write_bytes(b"")
    assert damages(folder) == ["1-of-2.crc32 is empty"] * RANKS


@pytest.mark.parametrize("name", [".metadata", "__0_0.distcp", "__1_0.distcp"])
def test_each_file_is_read_by_one_rank(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[7] ^= 1
    (folder / name).write_bytes(content)
    assert sorted(damages(folder)) == ["", f"{name} has another CRC-32 than when it was written"]


torch = pytest.importorskip("torch")


def updates(choice: OptimizerChoice, precision: str = "fp32") -> Updates:
    weight = nn.Parameter(torch.tensor([1.0, 1.0]))
    return Updates(choice.make([weight]), choice, loss_scaler(precision, weight.device))


def weight_of(made: Updates) -> nn.Parameter:
    weight: nn.Parameter = made.optimizer.param_groups[0]["params"][0]
    return weight


def test_the_learning_rate_grows_in_the_first_steps() -> None:
    choice = OptimizerChoice(name="sgd", learning_rate=0.4, warmup_steps=4)
    assert [choice.rate(step) for step in (1, 2, 4, 5)] == pytest.approx([0.1, 0.2, 0.4, 0.4])
    assert OptimizerChoice(name="sgd", learning_rate=0.4).rate(1) == pytest.approx(0.4)


def test_a_resumed_training_continues_the_warm_up() -> None:
    made = updates(OptimizerChoice(name="sgd", learning_rate=0.4, warmup_steps=4))
    made.resume(2, None)
    made.backward(weight_of(made).sum())
    made.apply()
    assert weight_of(made).tolist() == pytest.approx([0.7, 0.7])


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_larger_norm_is_clipped_and_a_smaller_one_is_not(precision: str) -> None:
    made = updates(OptimizerChoice(name="sgd", learning_rate=1.0, clip_norm=2.5), precision)
    made.backward((weight_of(made) * torch.tensor([3.0, 4.0])).sum())
    made.apply()
    assert float(made.grad_norm) == pytest.approx(5.0)  # type: ignore[arg-type]
    assert weight_of(made).tolist() == pytest.approx([-0.5, -1.0], abs=1e-5)
    made.optimizer.zero_grad()
    made.backward((weight_of(made) * torch.tensor([0.3, 0.4])).sum())
    made.apply()
    assert float(made.grad_norm) == pytest.approx(0.5)  # type: ignore[arg-type]
    assert weight_of(made).grad.tolist() == pytest.approx([0.3, 0.4])  # type: ignore[union-attr]


def test_a_gradient_that_is_not_finite_changes_nothing_in_fp16() -> None:
    made = updates(OptimizerChoice(name="adamw", learning_rate=1.0), "fp16")
    made.resume(1, 1024.0)
    made.backward((weight_of(made) * torch.inf).sum())
    made.apply()
    assert weight_of(made).tolist() == [1.0, 1.0]
    assert made.scaler.get_scale() == pytest.approx(512.0)


pytest.importorskip("torch")
APART = ("unshare", "--user", "--map-root-user", "--net")
UP = 'ip link set lo up && exec "$@"'


def _can_be_apart() -> bool:
    if not (shutil.which("unshare") and shutil.which("ip")):
        return False
    done = subprocess.run([*APART, "ip", "link", "set", "lo", "up"], check=False)
    return done.returncode == 0


@pytest.mark.skipif(not _can_be_apart(), reason="no network namespaces here")
def test_a_step_sends_and_keeps_what_the_formulas_say() -> None:
    strategies = ("ddp", "zero1", "fsdp", "tensor", "context", "pipeline")
    command = [sys.executable, "-m", "tests.trainer.wire_bytes", *strategies]
    done = subprocess.run(
        [*APART, "sh", "-c", UP, "sh", *command],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found.keys() == set(strategies)
    sent = {name: sent / formula for name, (sent, formula, _, _) in found.items()}
    assert sent == pytest.approx(dict.fromkeys(strategies, 1.0), abs=0.02)
    # A stage of a pipeline also has the buffers in which it receives: 3 % here.
    kept = {name: kept / formula for name, (_, _, kept, formula) in found.items()}
    assert kept == pytest.approx(dict.fromkeys(strategies, 1.0), abs=0.04)
