from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from hpc_train.workload.optimizer import OptimizerChoice, Updates  # noqa: E402
from hpc_train.workload.precision import loss_scaler  # noqa: E402


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
