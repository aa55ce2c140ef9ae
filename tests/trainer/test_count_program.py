"""Counts of models: known layers, the GPT of the reference trainer, and models that need values."""

import json
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.distributed._tools.mem_tracker import MemTracker

from hpc_train.advice.program import gpt_flops, gpt_parameters
from hpc_train.jobs.strategies import GPT_SHAPES
from hpc_train.trainer.count_program import counted, main
from hpc_train.trainer.models.gpt import make_gpt

GPT = GPT_SHAPES["gpt-mini"]


def perceptron() -> tuple[nn.Module, torch.Tensor]:
    layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    return layers, torch.zeros(5, 8)


def gpt() -> tuple[nn.Module, torch.Tensor]:
    return make_gpt(GPT), torch.zeros(2, GPT.context, dtype=torch.long)


def test_parameters_flops_and_activations_of_known_layers() -> None:
    found = counted(perceptron)
    assert found["parameters"] == 8 * 16 + 16 + 16 * 4 + 4
    # Forward both products; backward both weights, and the input of the second.
    assert found["flops_per_sample"] == 2 * (2 * 8 * 16 + 3 * 16 * 4)
    # The hidden values behind the ReLU; input and parameters are not activations.
    assert found["activation_bytes"] == 16 * 4


@pytest.mark.parametrize(
    ("change", "each"),
    [
        (lambda model: model.to(torch.bfloat16), 2),
        (lambda model: model.double(), 8),
        (lambda model: model.to("cuda"), 4),
        (lambda model: model.cuda().half().cpu(), 2),
        (lambda model: model.to("cuda:0", torch.float64, non_blocking=True), 8),
    ],
)
def test_a_model_may_be_converted_and_moved(
    change: Callable[[nn.Module], nn.Module], each: int
) -> None:
    def make() -> tuple[nn.Module, torch.Tensor]:
        model, inputs = perceptron()
        model[0].requires_grad_(False)  # type: ignore[index]
        model = change(model)
        return model, inputs.to("cuda", next(model.parameters()).dtype)

    found = counted(make)
    assert (found["parameters"], found["trained_parameters"]) == (212, 68)
    assert found["parameter_bytes"] == found["trained_bytes"] == each
    assert found["activation_bytes"] == 16 * each


def test_a_converted_model_still_shares_its_parameters() -> None:
    def make() -> tuple[nn.Module, torch.Tensor]:
        model = nn.Sequential(nn.Embedding(50, 8), nn.Linear(8, 50, bias=False))
        model[1].weight = model[0].weight
        return model.to(torch.bfloat16), torch.zeros(2, 5, dtype=torch.long)

    found = counted(make)
    assert (found["parameters"], found["precision"]) == (400, "bf16")
    assert found["activation_bytes"] == 2 * 5 * 8


def test_a_gpt_agrees_with_its_formulas() -> None:
    found = counted(gpt)
    assert found["parameters"] == gpt_parameters(GPT)
    assert found["flops_per_sample"] == pytest.approx(gpt_flops(GPT), rel=0.02)
    kept = 64 * GPT.context * GPT.width * GPT.blocks
    assert found["activation_bytes"] == pytest.approx(kept, rel=0.03)
    assert found["blocks"] == GPT.blocks


def test_activations_agree_with_the_memory_tracker_of_torch() -> None:
    model, tokens = gpt()
    tracker = MemTracker()
    tracker.track_external(model)
    with tracker:
        output = model(tokens).float().sum()
        held = tracker.get_tracker_snapshot("current")[torch.device("cpu")]
        activations = sum(
            size for kind, size in held.items() if "Act" in getattr(kind, "value", "")
        )
        output.backward()
    assert 2 * counted(gpt)["activation_bytes"] == pytest.approx(activations, rel=0.1)


def test_inputs_of_a_library_and_a_loss() -> None:
    class Keyed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)

        @property
        def dummy_inputs(self) -> dict[str, torch.Tensor]:
            return {"values": torch.zeros(4, 3)}

        def forward(self, values: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": self.layer(values).mean()}

    # Forward, and the gradient of the weights.
    assert counted(Keyed)["flops_per_sample"] == 2 * 2 * 3 * 2
    found = counted(lambda: (nn.Linear(3, 2), torch.zeros(4, 3), lambda output: output.mean()))
    assert found["flops_per_sample"] == 2 * 2 * 3 * 2


Answer = Callable[[str], dict[str, str]]


@pytest.fixture
def answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Answer:
    """Return the last line of a refused program, whose module is in `tmp_path`."""
    monkeypatch.syspath_prepend(tmp_path)

    def ask(word: str) -> dict[str, str]:
        assert main(word) == 1
        found: dict[str, str] = json.loads(capsys.readouterr().out.splitlines()[-1])
        return found

    return ask


@pytest.mark.parametrize(
    ("body", "error", "line"),
    [
        ("return 3", "TypeError: it returned int, not a model", ""),
        ("return nn.Linear(2, int(torch.zeros(1).item()))", "meta", "train.py:5: return nn"),
        ("return undefined", "NameError: name 'undefined'", "train.py:5: return undefined"),
    ],
)
def test_a_model_that_cannot_be_counted_has_the_line_and_a_hint(
    tmp_path: Path, answer: Answer, body: str, error: str, line: str
) -> None:
    name = f"train_{abs(hash(body))}"
    text = "import torch\nfrom torch import nn\n\ndef make_model():\n"
    (tmp_path / f"{name}.py").write_text(text + textwrap.indent(body, "    "))
    found = answer(f"{name}:make_model")
    assert error in found["error"]
    assert line.replace("train.py", f"{name}.py") in found["line"]
    assert found["hint"]
