"""Measurements in logs, as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hpc_train.api.arguments import AnyPath, results_of, text_of, texts_of
from hpc_train.base.extras import need
from hpc_train.jobs.log_selection import Search

if TYPE_CHECKING:
    import pandas as pd


def collect(
    paths: AnyPath | Iterable[AnyPath] = (), form: str = "auto", *, results: AnyPath | None = None
) -> pd.DataFrame:
    """Return the measurements in logs, one row each: of runs and studies, or of any log files.

    Columns: run, source (file), line, parser, metric, value, unit, scope (`global`, `per_gpu`,
    `per_rank`), step, rank, node, steps (of how many the value is the mean), message_size [B] and
    variant. Units are those of `hpc_train.base.metrics.UNITS`: seconds, samples or tokens per s,
    GiB, GB/s (10^9), fractions for accuracy and MFU. `form` names one parser instead of all,
    `results` the folder of all results. `frame.attrs["unreadable"]` lists files with errors.

    Raises:
        HpcTrainError: no such file or parser, none of the files can be read, or no line of them.
        MissingExtraError: pandas is not installed.
    """
    need("hpc_train.collect", "report", only=("pandas",))
    from hpc_train.reports.collect import collection, frame_of

    search = Search(root=results_of(results), form=text_of(form, "form"))
    return frame_of(collection(texts_of(paths, "paths"), search))
