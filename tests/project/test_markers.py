"""Tests on programs of the system: skipped with a reason, or failing where that is asked for."""

from __future__ import annotations

import pytest

from tests.conftest import missing, refuse


@pytest.mark.parametrize(
    ("required", "outcome"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)]
)
def test_without_mpirun(
    required: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/none")
    monkeypatch.setenv("HPCTRAIN_REQUIRE_SLURM", required)
    with pytest.raises(outcome, match="mpirun not found; install openmpi-bin"):
        refuse(missing("mpi"))
