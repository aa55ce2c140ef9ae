"""The trainer on two ranks, stopped or killed and started again."""

from pathlib import Path
from typing import Any

import pytest

from tests.trainer.forked_trainer import train
from tests.trainer.launching import events, finish, meeting_point, start

pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]
WORK = ("--data", "synthetic", "--width", "2", "--steps", "60", "--global-batch-size", "128")


def run(folder: Path, *more: str, ranks: int = 2, **extra: object) -> tuple[int, str, str]:
    """Return the first exit code that is not 0, what rank 0 wrote, and the stderr of all."""
    where = {"HPCTRAIN_CHECKPOINTS": folder / "ckpt", **extra}
    done = train(*WORK, *more, ranks=ranks, **where)
    code = next((one.returncode for one in done if one.returncode), 0)
    return code, done[0].stdout + done[0].stderr, "".join(one.stderr for one in done)


def result(text: str) -> dict[str, Any]:
    (end,) = events(text, "end")
    return {key: end[key] for key in ("steps", "samples", "accuracy", "loss")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    code, out, _ = run(tmp_path_factory.mktemp("undisturbed"))
    assert code == 0
    return result(out)


def test_a_killed_training_continues_from_its_checkpoint(
    tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    # An epoch has 32 steps: a checkpoint is at the end of one, another in the middle of the last.
    aid = ("--fail-rank", "1", "--fail-step")
    assert run(tmp_path, "--checkpoint-steps", "16", *aid, "40")[0] != 0
    code, out, _ = run(tmp_path, "--checkpoint-steps", "16", *aid, "50")
    assert code != 0
    assert "resumed after step 32\n" in out
    assert [event["step"] for event in events(out, "step")] == list(range(33, 50))
    code, out, _ = run(tmp_path)
    assert code == 0
    assert "resumed after step 48\n" in out
    assert result(out) == undisturbed


def test_a_training_that_is_asked_to_stop_saves_and_asks_to_be_resubmitted(
    tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    stop = tmp_path / "stop"
    stop.touch()
    code, out, _ = run(tmp_path, HPCTRAIN_STOP_FILE=stop)
    assert (code, "stopped after step 1 of 60, which is saved\n" in out) == (75, True)
    stop.unlink()
    code, out, _ = run(tmp_path, HPCTRAIN_STOP_FILE=stop)
    assert (code, result(out)) == (0, undisturbed)


def test_a_training_saves_by_time(tmp_path: Path) -> None:
    work = ("--steps", "8", "--checkpoint-minutes", "1e-6")
    assert run(tmp_path, *work, "--fail-rank", "1", "--fail-step", "5")[0] != 0
    code, out, _ = run(tmp_path, *work)
    assert (code, "resumed after step 4\n" in out) == (0, True)


def test_another_number_of_ranks_continues_with_the_same_global_batch(
    tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    assert run(tmp_path, "--checkpoint-steps", "16", "--fail-rank", "0", "--fail-step", "40")[0]
    code, out, _ = run(tmp_path, ranks=1)
    assert code == 0
    assert "resumed after step 32\n" in out
    assert "of 2 ranks is resumed by 1: parameters and optimiser" in out
    # Gradients are summed in another order.
    assert result(out)["loss"] == pytest.approx(undisturbed["loss"], rel=1e-3)


def test_another_number_of_ranks_would_change_the_global_batch(tmp_path: Path) -> None:
    work = ("--data", "synthetic", "--width", "2", "--steps", "6", "--batch-size", "64")
    more = ("--checkpoint-steps", "2", "--no-accuracy")
    where: dict[str, Any] = {"HPCTRAIN_CHECKPOINTS": tmp_path / "ckpt"}
    assert [one.returncode for one in train(*work, *more, **where)] == [0, 0]
    (done,) = train(*work, *more, ranks=1, **where)
    code, err = done.returncode, done.stderr
    assert code == 2
    assert (
        "the checkpoint after step 4 is of global batches of 128 samples, these are of 64; "
        "--global-batch-size 128 keeps them with any ranks and strategy"
    ) in err


def test_a_checkpoint_of_another_width_or_optimizer_is_refused(tmp_path: Path) -> None:
    assert run(tmp_path, "--checkpoint-steps", "2", "--fail-rank", "0", "--fail-step", "4")[0]
    code, out, _ = run(tmp_path, "--width", "3")
    assert code == 2
    assert "of another model: 0.bias is [2] there, [3] here" in out
    code, out, err = run(tmp_path, "--optimizer", "adamw")
    assert (code, "Traceback" in err) == (2, False)
    assert "of another optimiser: 0.bias.exp_avg is absent there, [2] here" in out


def test_a_training_goes_on_without_a_checkpoint_that_cannot_be_written(
    tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    nowhere: dict[str, Any] = {"HPCTRAIN_CHECKPOINTS": "/proc/nowhere"}
    stop = tmp_path / "stop"
    code, out, _ = run(tmp_path, "--checkpoint-steps", "40", **nowhere)
    assert (code, result(out)) == (0, undisturbed)
    assert out.count("no checkpoint: /proc/nowhere/step-0000000040: not written: ") == 1
    stop.touch()
    code, out, _ = run(tmp_path, HPCTRAIN_STOP_FILE=stop, **nowhere)
    assert (code, "stopped after step 1 of 60, which is not saved\n" in out) == (1, True)


def test_a_rank_that_cannot_write_fails_the_checkpoint_of_all(tmp_path: Path) -> None:
    program = Path(__file__).parent / "full_disk.py"
    common = {**meeting_point(), "WORLD_SIZE": 2, "HPCTRAIN_CHECKPOINTS": tmp_path / "ckpt"}
    ranks = [start((program,), **common, RANK=r, PYTHONPATH=ROOT) for r in (0, 1)]
    results = [finish(rank) for rank in ranks]
    assert [code for code, _, _ in results] == [0, 0], results
    assert all("not written: [Errno 27] File too large" in out for _, out, _ in results), results
    assert sorted(path.name for path in (tmp_path / "ckpt").iterdir()) == [
        "resumed",
        "step",
        "step-0000000001",
    ]
