"""hpctrain: job scripts, site profiles and scaling reports for distributed PyTorch on Slurm.

Here: `collect` for Python users; as modules, what every stage may use: errors, decoding, files,
processes, the registry of plug-ins.
Not here: anything that only one stage needs. docs/architecture.md is the map of the packages.
"""

# Python 3.6 must be able to read this file and version.py, and print the sentence below: no newer
# syntax, and no import of annotations from __future__.
import sys
from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING

from hpc_train.version import VERSION

if TYPE_CHECKING:
    import pandas as pd

# pip refuses an older Python; a checkout, or a folder of PYTHONPATH, comes as far as here.
if sys.version_info < (3, 10):  # noqa: UP036
    sys.stderr.write(
        f"hpctrain needs Python 3.10 or later, and {sys.executable} is Python "
        f"{sys.version.split()[0]}: load a module of a newer Python, or type: "
        "uv tool install --python 3.12 hpctrain (docs/install.md)\n"
    )
    sys.exit(2)

__version__ = VERSION


def collect(
    paths: "str | PathLike[str] | Iterable[str | PathLike[str]]", form: str = "auto"
) -> "pd.DataFrame":
    """Return the measurements in logs, one row each: of runs and studies, or of any log files.

    Columns: run, source (file), line, parser, metric, value, unit, scope (`global`, `per_gpu`,
    `per_rank`), step, rank, node, steps (of how many the value is the mean), message_size [B] and
    variant. Units are those of `hpc_train.model.record.UNITS`: seconds, samples or tokens a second,
    GiB, GB/s (10^9), fractions for accuracy and MFU. `form` names one parser instead of all.

    Raises:
        HpcTrainError: no such file or parser, none of the files can be read, or no line of them.
        MissingExtraError: pandas is not installed.
    """
    # Pandas takes half a second, and most users of the package never call this.
    from hpc_train.extras import need
    from hpc_train.json_files import default_results
    from hpc_train.model.log_selection import Search
    from hpc_train.pipeline.collect import collection

    need("hpc_train.collect", "report", only=("pandas",))
    from hpc_train.tables.parquet import records_frame

    words = [paths] if isinstance(paths, str | PathLike) else paths
    search = Search(root=default_results(), form=form)
    return records_frame(collection([str(word) for word in words], search).packs())
