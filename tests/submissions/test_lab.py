"""`hpctrain lab down`: a folder that is named must contain a lab."""

from __future__ import annotations

import pytest

from hpc_train.base.errors import LabError
from hpc_train.lab import lab


@pytest.fixture
def no_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the removal, which needs root, by its result on a machine without a lab."""
    monkeypatch.setattr(lab, "down", lambda folder: "")


def test_a_folder_without_a_lab_is_an_error(no_lab: None) -> None:
    with pytest.raises(LabError) as failure:
        lab.stop_lab("/nope")
    assert failure.value.message == "no lab in /nope"
    assert failure.value.hint == "hpctrain lab status"
    assert failure.value.exit_code == 2


def test_no_lab_at_all_is_no_error_without_a_folder(no_lab: None) -> None:
    assert lab.stop_lab(None) == ""
