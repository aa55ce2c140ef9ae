"""hpctrain: job scripts, site profiles and scaling reports for distributed PyTorch on Slurm.

Here: `collect` for Python users; as modules, what every stage may use: errors, decoding, files,
processes, the registry of plug-ins.
Not here: anything that only one stage needs. docs/architecture.md is the map of the packages.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING

from hpc_train.version import VERSION

if TYPE_CHECKING:
    import pandas as pd

__version__ = VERSION


def collect(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]], form: str = "auto"
) -> pd.DataFrame:
    """Return the measurements in logs, one row each: of runs and studies, or of any log files.

    Columns: run, source (file), line, parser, metric, value, unit, scope (`global`, `per_gpu`,
    `per_rank`), step, rank, node, steps (of how many the value is the mean), message_size [B] and
    variant. Units are those of `hpc_train.model.record.UNITS`: seconds, samples or tokens a second,
    GiB, GB/s (10^9), fractions for accuracy and MFU. `form` names one parser instead of all.

    Raises:
        HpcTrainError: no such file or parser, none of the files can be read, or no line of them.
    """
    # Pandas takes half a second, and most users of the package never call this.
    from hpc_train.json_files import default_results
    from hpc_train.model.log_selection import Search
    from hpc_train.pipeline.collect import collection
    from hpc_train.tables.parquet import records_frame

    words = [paths] if isinstance(paths, str | PathLike) else paths
    search = Search(root=default_results(), form=form)
    return records_frame(collection([str(word) for word in words], search).packs())
