"""A process that is killed in the middle of a save leaves a whole checkpoint."""

import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

pytest.importorskip("torch")

from hpc_train.trainer import checkpoint
from tests.trainer.test_checkpoint import Training

pytestmark = pytest.mark.filterwarnings("ignore:.*weights_only.*")
MOMENTS = 12
RENAMES = ("rename", "replace", "link", "unlink", "mkdir", "rmdir")


def save_beside(training: Training, step: int) -> None:
    """Save, and train on."""
    training.async_save(step)
    training.step()
    checkpoint.finish()


def in_a_process(action: Callable[[], object]) -> int:
    """Run an action in a fork of this process; return how it ended."""
    child = os.fork()
    if child == 0:
        try:
            action()
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1]


def counted(action: Callable[[], object], killed_at: int = 0, *, renames: bool = False) -> int:
    """Do something; return the number of calls in it, or kill the process at one of them.

    `renames`: only system calls that change the names of files are counted.
    """
    calls = 0

    def called(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        if renames and (event != "c_call" or argument.__name__ not in RENAMES):
            return
        calls += 1
        if calls == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(called)
    sys.setprofile(called)
    try:
        action()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HPCTRAIN_CHECKPOINTS", str(tmp_path / "ckpt"))
    return tmp_path / "ckpt"


@pytest.mark.parametrize("save", [Training.save, save_beside])
def test_a_save_is_killed_at_any_moment(
    folder: Path, save: Callable[[Training, int], object]
) -> None:
    """What is resumed is always one of two whole states, and the next save works."""
    training = Training()
    training.step()
    save(training, 0)  # the first one imports modules: its calls are more than those of another
    calls = counted(partial(save, training, 1))
    training.save(1)
    states, chosen = {1: training.weights()}, random.Random(7)  # noqa: S311
    killed = 0
    for step in range(2, MOMENTS + 2):
        training.step()
        states[step] = training.weights()
        moment = chosen.randint(1, calls)
        ended = in_a_process(partial(counted, partial(save, training, step), moment))
        # A save may make fewer calls than the one that was counted.
        killed += os.WTERMSIG(ended) == signal.SIGKILL
        resumed = Training()
        found = checkpoint.resume(resumed.model, resumed.optimizer)
        assert found in (step - 1, step), f"killed at call {moment} of {calls}"
        assert resumed.weights() == states[found]
        training.save(step)
    assert killed >= MOMENTS * 0.8
    # A file that was being written has a hidden name.
    assert sorted(path.name for path in folder.glob("[!.]*")) == [
        "resumed",
        "step",
        f"step-{MOMENTS:010d}",
        f"step-{MOMENTS + 1:010d}",
    ]


def test_the_only_checkpoint_is_saved_again(folder: Path) -> None:
    """Killed at each change of a name by the save, there is always a whole one of this step."""
    training = Training()
    training.step()
    again = partial(checkpoint.save, 1, training.model, training.optimizer, keep=1)
    again()
    for moment in count(1):
        before = training.weights()
        training.step()
        ended = in_a_process(partial(counted, again, moment, renames=True))
        resumed = Training()
        assert checkpoint.resume(resumed.model, resumed.optimizer) == 1, moment
        assert resumed.weights() in (before, training.weights())
        if os.WTERMSIG(ended) != signal.SIGKILL:
            break  # The save ended before this many changes.
        again()
    assert moment > 2, "no save was killed between two changes"
    assert resumed.weights() == training.weights()
    names = sorted(path.name for path in folder.glob("[!.]*"))
    assert names == ["resumed", "step", "step-0000000001"]
