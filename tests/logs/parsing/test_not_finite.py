"""A loss that is NaN or infinite is told apart from a loss that was not measured."""

import io

import pytest

from hpc_train.base import registry
from hpc_train.logs.formats.formats import maker
from hpc_train.logs.line import dispatch
from hpc_train.logs.read_log import ParseStats, hits_in


def stated(text: bytes) -> list[tuple[int, str]]:
    """Return line number and parser of each `not_finite`."""
    parsers = {name: maker(name)() for name in registry.names("parsers")}
    lines = dispatch(io.BytesIO(text + b"\n"), tuple(parsers.values()), None)
    return [
        (line.number, name)
        for name, line, hits in hits_in(lines, parsers, "log", ParseStats())
        for hit in hits
        if (hit.metric, hit.variant, hit.value) == ("not_finite", "loss", 1.0)
    ]


@pytest.mark.parametrize(
    ("line", "parser"),
    [
        (b'@hpct {"step": 3, "loss": null, "step_time": 0.5}', "events"),
        (b"Train Epoch: 1 [640/60000 (1%)]\tLoss: nan", "tutorials"),
        (b"iter 20: loss nan, time 338.10ms, mfu 12.00%", "nanogpt"),
        (b"{'loss': 'inf', 'grad_norm': 'nan', 'learning_rate': '1e-05', 'epoch': '1.0'}", ""),
    ],
)
def test_a_training_loss_without_a_number(line: bytes, parser: str) -> None:
    [(number, name)] = stated(line)
    assert number == 1
    assert not parser or name == parser


@pytest.mark.parametrize(
    "line",
    [
        b"iter 20: loss 2.5, time 338.10ms, mfu 12.00%",
        b'{"train_loss": 0.5, "train_lr": 0.1, "test_loss": NaN, "epoch": 1}',
        b'{"train_lr": 0.1, "test_acc1": 70.5, "test_loss": NaN, "epoch": 1}',
        b'{"train_lr": 0.1, "train_loss": null, "test_acc1": 70.5, "epoch": 1}',
        b"the loss is nan",
    ],
)
def test_what_is_no_lost_loss(line: bytes) -> None:
    assert stated(line) == []
