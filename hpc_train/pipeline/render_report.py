"""Report -> text in a registered format."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from hpc_train.model.report import Report
from hpc_train.registry import load


def render_report(report: Report, form: str) -> str:
    """Write a report in a registered format.

    Raises:
        UnknownNameError: no such format.
    """
    return cast(Callable[[Report], str], load("formats", form))(report)
