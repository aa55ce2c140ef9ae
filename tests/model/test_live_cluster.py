"""Generic resources, as nodes and `--gres` write them."""

from __future__ import annotations

import pytest

from hpc_train.model.live_cluster import gres


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu:a100:4(S:0-1)", [("gpu", "a100", 4)]),
        ("gpu:4", [("gpu", "", 4)]),
        ("gpu:1g.10gb:7,gpu:h100:3", [("gpu", "1g.10gb", 7), ("gpu", "h100", 3)]),
        ("craynetwork:4,nvme:1600G", [("craynetwork", "", 4)]),
        ("gpu:h200:8(S:0-1,3),tmpdisk:1024", [("gpu", "h200", 8), ("tmpdisk", "", 1024)]),
        ("(null)", []),
        ("", []),
        ("gpu:", []),
        ("gpu", [("gpu", "", 1)]),
        ("gpu:a100", [("gpu", "a100", 1)]),
        ("gres/gpu=2", [("gpu", "", 2)]),
        ("gpu:$N", []),
    ],
)
def test_gres(text: str, expected: list[tuple[str, str, int]]) -> None:
    assert [(one.name, one.kind, one.count) for one in gres(text)] == expected
