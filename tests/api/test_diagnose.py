"""hpc_train.diagnose: runs, and the jobs of logs."""

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


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(HpcTrainError, match="unknown run or study 'none'"):
        diagnose("none", results=tmp_path)
    with pytest.raises(HpcTrainError, match=r"^one_job: Expected `bool`"):
        diagnose(str(LOGS), results=tmp_path, one_job=1)
