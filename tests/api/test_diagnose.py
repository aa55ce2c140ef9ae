"""hpc_train.diagnose: runs, and the jobs of logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hpc_train
from hpc_train.base.errors import HpcTrainError

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "examples" / "logs"
diagnose: Callable[..., Any] = hpc_train.diagnose


def test_a_log_has_a_root_cause() -> None:
    found = hpc_train.diagnose(LOGS / "gpt-32.log")
    assert found.outcome == "failed"
    assert found.root is not None
    assert found.root.id == "cuda_oom"
    assert found.findings[0] is found.root
    assert found.root.title.split()[0] in found.text
    assert found.unreadable == ()
    assert repr(found) == "<DiagnosedJobs gpt-32.log: failed>"


@pytest.mark.parametrize(
    ("words", "keys", "pattern"),
    [
        ([], {}, "^paths: the list is empty"),
        (3, {}, "^paths: Expected `str`"),
        ("none", {}, "unknown run or study 'none'"),
        (str(LOGS), {"one_job": 1}, "^one_job: Expected `bool`"),
    ],
    ids=["no logs", "another type", "unknown", "one_job"],
)
def test_wrong_arguments(
    words: object, keys: dict[str, object], pattern: str, tmp_path: Path
) -> None:
    with pytest.raises(HpcTrainError, match=pattern):
        diagnose(words, results=tmp_path, **keys)
