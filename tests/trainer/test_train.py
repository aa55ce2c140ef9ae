import socket
from pathlib import Path

import pytest

from tests.trainer.forked_trainer import run, train
from tests.trainer.launching import TINY, events, finish, meeting_point, start, trainer

pytest.importorskip("torch")
STRONG = (*TINY, "--global-batch-size", "64")
WEAK = (*TINY, "--batch-size", "32", "--no-accuracy")
START_FIELDS = (
    "v event rank world_size total_steps global_batch_size batch_size learning_rate backend device "
    "torch model data precision seed threads launcher_env"
)
Outputs = tuple[str, str]


@pytest.fixture(scope="module")
def alone() -> str:
    done = run(STRONG)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def by_environment() -> Outputs:
    return by_hand(STRONG)


@pytest.fixture(scope="module")
def spawned(tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    logs = tmp_path_factory.mktemp("logs")
    where = {"LOCAL_WORLD_SIZE": 2, "HPCTRAIN_LOG_DIR": logs}
    assert finish(start(trainer(*STRONG), **meeting_point(), **where)) == (0, "", "")
    return (logs / "rank-0.out").read_text(), (logs / "rank-1.out").read_text()


def by_hand(words: tuple[str, ...]) -> Outputs:
    first, second = train(*words)
    assert [first.returncode, second.returncode] == [0, 0]
    return first.stdout, second.stdout


def test_one_process_needs_no_environment(alone: str) -> None:
    (first,) = events(alone, "start")
    assert (first["world_size"], first["backend"], first["launcher_env"]) == (1, "none", "single")
    (last,) = events(alone, "end")
    assert (last["steps"], last["samples"], last["world_size"]) == (4, 256, 1)
    assert 0 <= last["accuracy"] <= 1


def test_start_event_has_the_agreed_fields(spawned: Outputs) -> None:
    (first,) = events(spawned[0], "start")
    assert list(first) == START_FIELDS.split()
    assert (first["global_batch_size"], first["batch_size"], first["threads"]) == (64, 32, 1)
    assert (first["backend"], first["launcher_env"]) == ("gloo", "spawn")


def test_every_rank_reports_every_step(by_environment: Outputs) -> None:
    for rank, out in enumerate(by_environment):
        steps = events(out, "step")
        assert [step["step"] for step in steps] == [1, 2, 3, 4]
        assert {step["rank"] for step in steps} == {rank}
        assert {step["samples"] for step in steps} == {32}
        assert all(step["step_time"] > 0 for step in steps)
        keys = "v event rank epoch step step_time samples loss compute_time node"
        assert list(steps[0]) == keys.split()


def test_only_rank_0_reports_the_whole(by_environment: Outputs) -> None:
    for kind in ("start", "epoch", "end"):
        assert len(events(by_environment[0], kind)) == 1
        assert not events(by_environment[1], kind)


def test_epoch_loss_is_the_mean_over_all_ranks(by_environment: Outputs) -> None:
    losses = [step["loss"] for out in by_environment for step in events(out, "step")]
    assert events(by_environment[0], "epoch")[0]["loss"] == pytest.approx(sum(losses) / 8)


def test_end_event_agrees_with_itself(by_environment: Outputs) -> None:
    (last,) = events(by_environment[0], "end")
    assert last["samples_per_second"] == pytest.approx(256 / last["time_to_train"])
    assert last["samples"] == 256
    assert last["first_step_time"] == events(by_environment[0], "step")[0]["step_time"]
    assert last["time_to_train"] >= sum(s["step_time"] for s in events(by_environment[0], "step"))


def test_launcher_does_not_change_the_result(by_environment: Outputs, spawned: Outputs) -> None:
    ends = [events(outputs[0], "end")[0] for outputs in (by_environment, spawned)]
    assert ends[0]["loss"] == pytest.approx(ends[1]["loss"], abs=1e-6)
    assert ends[0]["accuracy"] == ends[1]["accuracy"]


def test_ranks_do_not_change_the_result_at_one_global_batch(alone: str, spawned: Outputs) -> None:
    one, two = events(alone, "end")[0], events(spawned[0], "end")[0]
    assert one["global_batch_size"] == two["global_batch_size"] == 64
    assert one["loss"] == pytest.approx(two["loss"], abs=1e-5)


def test_weak_scaling_raises_the_learning_rate() -> None:
    out, _ = by_hand(WEAK)
    (first,) = events(out, "start")
    assert (first["global_batch_size"], first["batch_size"]) == (64, 32)
    assert first["learning_rate"] == pytest.approx(0.05)
    assert "learning rate 0.05 = 0.1 x 64/128" in out.splitlines()
    assert "accuracy" not in events(out, "end")[0]


def test_failing_rank_decides_the_exit_code(tmp_path: Path) -> None:
    failure = tmp_path / "failure"
    command = trainer(*STRONG, "--fail-rank", "1", "--fail-step", "2", "--fail-code", "3")
    extra = {"LOCAL_WORLD_SIZE": 2, "HPCTRAIN_FAILURE_FILE": failure}
    code, out, err = finish(start(command, **meeting_point(), **extra))
    assert code == 3
    assert failure.read_text().split()[:3] == ["1", socket.gethostname(), "3"]
    assert "rank 1: exits as requested by --fail-rank" in err
    assert {step["step"] for step in events(out, "step") if step["rank"] == 1} == {1}


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (["--global-batch-size", "5000"], "5000 samples is larger than the training set of 4096"),
        (
            "--width 2 --global-batch-size 1024 --epochs 1 --profile-steps 3".split(),
            "--profile-steps: 3 steps from step 3 on are to be profiled, but the training has 4",
        ),
    ],
)
def test_options_that_the_data_cannot_meet(asked: list[str], problem: str) -> None:
    done = run(("--data", "synthetic", *asked))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert problem in done.stderr
