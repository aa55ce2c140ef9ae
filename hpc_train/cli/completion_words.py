"""Words for the completion of a shell: sites, studies and runs; errors give none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hpc_train.base.errors import HpcTrainError
from hpc_train.runs.run_folders import homes, run_folders
from hpc_train.sites.search import profile_files


def site_names() -> list[str]:
    """Return the names of all profiles on the search path."""
    return [path.stem for path in profile_files()]


def study_and_run_names(root: Path) -> Iterator[str]:
    """Yield the names of all jobs and studies, and of their runs."""
    try:
        for home in homes(root):
            yield home.name
            yield from (run.run_id for run in run_folders(home))
    except (HpcTrainError, OSError):
        # A shell that waits for words cannot show an error.
        return
