"""llm.c: lines of the CUDA and of the Python trainer."""

from __future__ import annotations

import pytest

from tests.records.parse_text import parse, values

CUDA = (
    "step    1/10 | loss 11.032358 (+nanz)| norm 22.1414 (-0.25z)| lr 8.57e-07 | 2575.63 ms | "
    "39.0% bf16 MFU | 203557 tok/s"
)
PYTHON = (
    "step    2/10 | train loss 10.9585 | norm 22.0968 | lr 1.71e-06 | (250.50 ms | 206736 tok/s)"
)
Found = list[tuple[str, float, str, int | None, str]]


def found(text: str) -> Found:
    return [
        (hit.metric, hit.value, hit.scope, hit.step, hit.variant)
        for _, hit, _ in parse(text.encode())
    ]


def test_cuda() -> None:
    assert found(CUDA) == [
        ("loss", 11.032358, "global", 1, ""),
        ("grad_norm", 22.1414, "global", 1, ""),
        ("learning_rate", 8.57e-07, "global", 1, ""),
        ("step_time", 2.57563, "global", 1, ""),
        ("mfu", 0.39, "per_gpu", 1, ""),
        ("tokens_per_second", 203557.0, "global", 1, "running_average"),
    ]


def test_python() -> None:
    assert found(PYTHON) == [
        ("loss", 10.9585, "global", 2, ""),
        ("grad_norm", 22.0968, "global", 2, ""),
        ("learning_rate", 1.71e-06, "global", 2, ""),
        ("step_time", 0.2505, "global", 2, ""),
        ("tokens_per_second", 206736.0, "global", 2, ""),
    ]


@pytest.mark.parametrize("share", ["-100.0", "nan", "-nan"])
def test_unknown_utilisation(share: str) -> None:
    line = CUDA.replace("39.0%", f"{share}%")
    assert not values(line.encode(), "mfu")
    assert values(line.encode(), "step_time") == [2.57563]


def test_mean_at_the_end() -> None:
    text = "total average iteration time: 2502.500892 ms\n"
    assert found(text) == [("step_time", 2.502500892, "global", None, "mean")]


@pytest.mark.parametrize("prefix", ["0: ", "[1,0]<stdout>:", "\x1b[32m"])
def test_behind_a_prefix_and_between_returns(prefix: str) -> None:
    text = f"evaluating HellaSwag: 0/79\r{prefix}{CUDA}\r\n"
    assert found(text) == found(CUDA)


@pytest.mark.parametrize("line", [CUDA, PYTHON])
def test_cut_line_states_nothing(line: str) -> None:
    for length in range(len(line) - len(" tok/s)")):
        assert not found(line[:length])
