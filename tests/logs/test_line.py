"""Prefixes of launchers: what they name, however they are stacked, and what is none."""

import pytest

from hpc_train.logs.line import Line, Prefix, peel
from tests.cases import cases


@pytest.mark.parametrize(
    ("text", "rank", "local", "host"), cases("logs/prefixes.yaml", "a_prefix_names_who_wrote")
)
def test_a_prefix_names_who_wrote(
    text: str, rank: int | None, local: int | None, host: str | None
) -> None:
    found = peel(text)
    assert (found.rest, found.rank, found.local, found.host) == ("text", rank, local, host)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "text",
        "[titan] step: 1",
        "[INFO] 3: text",
        "2025-01-02 03:04:05,678 INFO step 3",
        "2025-01-02 03:04:05.525932: W tensorflow/core/op_kernel.cc:1] text",
        "[2025-01-02 03:04:05,678] [INFO] text",
        "[train.py:12]: text",
        "[E1015 10:11:12.3 ProcessGroupNCCL.cpp:616] text",
        "iter 3: loss 2",
        "03:04:05 text",
        "[99999999999] text",
    ],
)
def test_what_is_no_prefix_stays(text: str) -> None:
    assert peel(text) == Prefix(text)


def test_label_of_srun_is_kept_under_torchrun() -> None:
    found = peel("1: [default3]:text")
    assert (found.task, found.local, found.rank) == (1, 3, None)


@pytest.mark.parametrize(
    ("raw", "node"),
    [
        (b"[n1:2]:text", "n1"),
        (b"\x1b[31m[n1:2]:\x1b[0m text", "n1"),
        (b"Jan 12 03:04:05 [n1:2]:text", "n1"),
        (b"text", None),
        (b"\xff\x00", None),
        (b"", None),
    ],
)
def test_node_of_a_line(raw: bytes, node: str | None) -> None:
    assert Line(raw).node == node


@pytest.mark.parametrize("rest", ["Epoch: [0]", "Jan 12 is no prefix", "Mon, 3", "é 5", "x", ""])
def test_text_behind_a_prefix_may_look_like_another(rest: str) -> None:
    assert peel(f"3: {rest}") == Prefix(rest, rank=3, task=3)
    assert peel(f"12:00:00 3: {rest}") == Prefix(rest, rank=3, task=3)
