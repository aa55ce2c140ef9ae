"""A study as a bundle, without its folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from hpc_train.model.log_selection import Search
from hpc_train.model.report_options import ReportOptions
from hpc_train.pipeline.report import build_report
from hpc_train.pipeline.report_inputs import report_inputs
from hpc_train.pipeline.write_bundle import write_bundle


def packed(home: Path) -> Path:
    """Pack the study of a folder, remove the folder, and return the bundle."""
    inputs, bundle = report_inputs([str(home)], Search(root=home.parent)), Path("study.tar.zst")
    write_bundle(inputs, build_report(inputs), ReportOptions(), bundle)
    shutil.rmtree(home)
    return bundle
