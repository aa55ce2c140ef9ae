"""hpctrain: job scripts, site profiles and scaling reports for distributed PyTorch on Slurm.

Here: the names of the Python interface, each loaded at its first use; as modules, what every stage
may use: errors, decoding, files, processes, the registry of plug-ins.
Not here: the interface itself (`api`), anything that only one stage needs. docs/python.md describes
the interface, docs/architecture.md is the map of the packages.
"""

# Python 3.6 must be able to read this file, and print the sentence below: no newer
# syntax, and no import of annotations from __future__.
import sys

# What `typing` has; its import would be the slowest part of the start.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from hpc_train.api.advise import AdviceReport, advise
    from hpc_train.api.diagnose import DiagnosedJobs, diagnose
    from hpc_train.api.report import Comparison, ScalingReport, collect, compare, report
    from hpc_train.api.run import SubmittedRun, SubmittedStudy, run, study, submit
    from hpc_train.base.errors import HpcTrainError

# pip refuses an older Python; a checkout, or a folder of PYTHONPATH, comes as far as here.
if sys.version_info < (3, 10):  # noqa: UP036
    sys.stderr.write(
        f"hpctrain needs Python 3.10 or later, and {sys.executable} is Python "
        f"{sys.version.split()[0]}: load a module of a newer Python, or type: "
        "uv tool install --python 3.12 hpctrain (docs/install.md)\n"
    )
    sys.exit(2)

__version__ = "0.1.0"

__all__ = [
    "AdviceReport",
    "Comparison",
    "DiagnosedJobs",
    "HpcTrainError",
    "ScalingReport",
    "SubmittedRun",
    "SubmittedStudy",
    "__version__",
    "advise",
    "collect",
    "compare",
    "diagnose",
    "report",
    "run",
    "study",
    "submit",
]

# The module of each name: a command line needs none of them, and pandas takes half a second.
_MODULES = {
    "AdviceReport": "api.advise",
    "Comparison": "api.report",
    "DiagnosedJobs": "api.diagnose",
    "HpcTrainError": "base.errors",
    "ScalingReport": "api.report",
    "SubmittedRun": "api.run",
    "SubmittedStudy": "api.run",
    "advise": "api.advise",
    "collect": "api.report",
    "compare": "api.report",
    "diagnose": "api.diagnose",
    "report": "api.report",
    "run": "api.run",
    "study": "api.run",
    "submit": "api.run",
}


# A type checker would accept any name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Load a name of the interface at its first use (PEP 562)."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        try:
            value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        except ModuleNotFoundError as failure:
            from hpc_train.base.extras import lacking

            raise lacking(failure) or failure from None
        globals()[name] = value
        return value


def __dir__() -> "list[str]":
    """List also the names that were not loaded yet."""
    return sorted({*globals(), *_MODULES})
