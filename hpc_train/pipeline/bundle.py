"""Evidence and its report <-> one file that a reviewer can open anywhere."""

from __future__ import annotations

from pathlib import Path

from hpc_train.model.report import Report
from hpc_train.pipeline.evidence import Evidence

ENDING = ".tar.zst"


def write_bundle(found: Evidence, report: Report, path: Path) -> None:
    """Pack records, scripts, settings, profile and the report; the same input, the same bytes.

    Raises:
        StoreError: the file cannot be written.
    """
    raise NotImplementedError
