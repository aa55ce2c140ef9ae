"""The errors that a user can cause or correct; each has a message and the next command.

A message states where (file:line or run id), what is wrong and what is allowed; the hint is the
next command. Bugs are never wrapped in these classes.
"""

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from hpc_train.base.values import Value


class HpcTrainError(Exception):
    """Base of every error that a user can cause; `exit_code` is that of the command.

    `keys` is the command that describes the values that are refused.
    """

    exit_code = 2
    keys = ""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def __notes__(self) -> list[str]:
        """The hint, which Python and IPython print below the message of a traceback (PEP 678)."""
        return [self.hint] if self.hint else []


class SpecError(HpcTrainError):
    """A job file, study file or command-line setting is wrong."""

    keys = "hpctrain help files"


class ArgumentError(HpcTrainError):
    """An argument of a Python function has a wrong type or value."""


class SiteProfileError(HpcTrainError):
    """A site profile is wrong or cannot be found."""

    keys = "hpctrain site schema --keys"


class PlanError(HpcTrainError):
    """The job and the site, each valid, do not fit together."""


class StrategyError(PlanError):
    """The strategy of a training cannot run on the ranks of its job, for a `reason`."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.reason = reason


class RenderError(HpcTrainError):
    """A template is wrong or a value cannot be written into a script."""


class StoreError(HpcTrainError):
    """A run folder cannot be read or written."""


class NothingToDrawError(StoreError):
    """A report has no value for the figure that was asked for."""

    exit_code = 3


class NewerVersionError(StoreError):
    """A run folder was written by a newer version, and nothing in it is read or written."""


class SubmitError(HpcTrainError):
    """The executor refused or failed; `transient` if it is unknown whether it did."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "", *, transient: bool = False) -> None:
        super().__init__(message, hint)
        self.transient = transient


class HostsError(SubmitError):
    """Machines that ssh reaches cannot be used for a job; nothing was started on any."""

    exit_code = 2
    page = "hosts"


class WaitTimeoutError(HpcTrainError, TimeoutError):
    """Runs have not finished within the time that was given; they continue."""

    exit_code = 1


class ProbeError(HpcTrainError):
    """Slurm or a node is missing, does not answer, or its output cannot be parsed."""

    exit_code = 1


class LabError(HpcTrainError):
    """The lab cannot be started or stopped, or another lab is running."""


class LogParseError(HpcTrainError):
    """A log cannot be read."""


class SignatureError(HpcTrainError):
    """A file of failure signatures is wrong."""


class ReportError(HpcTrainError):
    """The requested report cannot be made from the measurements."""


class MissingExtraError(HpcTrainError):
    """A command needs a package that is not installed."""


class UnknownNameError(HpcTrainError):
    """A launcher, site, parser, format, run … of that name does not exist."""

    def __init__(
        self, kind: str, name: str, known: Iterable[str], where: str = "", hint: str = ""
    ) -> None:
        names = sorted(set(known))
        shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        place = f"{where}: " if where else ""
        # `lab*`: what it would match differs between machines.
        pattern = ", and names are no patterns" if set("*?[") & set(name) else ""
        super().__init__(
            f"{place}unknown {kind} {name!r}{pattern}{nearest(name, names)}; "
            f"known: {shown or 'none'}",
            hint,
        )
        self.name = name


def newer_version(where: str, schema: object, known: int) -> tuple[str, str]:
    """Return message and hint for a file of a schema that only a newer version reads."""
    return (
        f"{where}: written by a newer hpctrain (schema {schema}, this one reads {known})",
        "pip install --upgrade hpctrain",
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the closest known name in any case, or nothing.

    One that is only somewhat alike begins with the same letter.
    """
    import difflib

    spelled = {one.lower(): one for one in known}
    matches = difflib.get_close_matches(name.lower(), spelled, n=1, cutoff=0.75)
    initial = [one for one in spelled if one[:1] == name[:1].lower()]
    matches = matches or difflib.get_close_matches(name.lower(), initial, n=1, cutoff=0.6)
    return f"; did you mean {spelled[matches[0]]!r}?" if matches else ""


Severity = Literal["error", "warning", "info"]
# Of a failure in a log: fatal ended the job, benign did no harm.
LogSeverity = Literal["fatal", "warning", "info", "benign"]


class Finding(Value, frozen=True, kw_only=True):
    """What every check reports; subclasses add the place and what only their kind has.

    `id` names the rule, signature or section of a report. `message` states what is wrong or its
    cause, `advice` what to do. An error prevents a job from working or makes it wrong, a warning
    costs time or hides a failure, an info is for information.
    """

    id: str = ""
    severity: Severity | LogSeverity
    message: str
    advice: str = ""


class LintFinding(Finding, frozen=True, kw_only=True):
    """A finding in a job script; lines count from 1."""

    severity: Severity
    line: int


def has_errors(findings: Iterable[Finding]) -> bool:
    """Whether one of the findings is an error."""
    return any(finding.severity == "error" for finding in findings)


# Extra -> names under which its packages are imported; pandas contains numpy.
EXTRAS = {
    "report": ("pandas", "scipy", "matplotlib"),
    "parquet": ("pyarrow", "pandas"),
    "xlsx": ("openpyxl",),
    "fast": ("hyperscan",),
    "torch": ("torch", "sklearn"),
    "sagemaker": ("boto3",),
}
_CONTAINED = {"numpy": "pandas"}


def need(what: str, extra: str, instead: str = "", *, only: tuple[str, ...] = ()) -> None:
    """Check that the packages of an extra, or `only` some, can be found, without importing them.

    Raises:
        MissingExtraError: one sentence: that `what` needs them, and the command to type.
    """
    missing = [name for name in only or EXTRAS[extra] if importlib.util.find_spec(name) is None]
    if missing:
        raise _error(what, missing, extra, instead)


def is_installed(extra: str) -> bool:
    """Return whether all packages of an extra can be found."""
    return all(importlib.util.find_spec(name) is not None for name in EXTRAS[extra])


def lacking(failure: ModuleNotFoundError) -> MissingExtraError | None:
    """Return the error for a failed import of a package of an extra; None for any other module."""
    top = (failure.name or "").partition(".")[0]
    package = _CONTAINED.get(top, top)
    for extra, names in EXTRAS.items():
        if package in names:
            return _error("this command", [top], extra, "")
    return None


def _error(what: str, missing: list[str], extra: str, instead: str) -> MissingExtraError:
    *others, last = missing
    names = f"{', '.join(others)} and {last}" if others else last
    them = "them" if others else "it"
    other = f", or {instead}" if instead else ""
    return MissingExtraError(
        f"{what} needs {names}; install {them}: {install_command(extra)}{other}"
    )


def install_command(extra: str) -> str:
    """Return the command that adds an extra to the environment of this interpreter."""
    target = shlex.quote(f"{_source()}[{extra}]")
    if importlib.util.find_spec("pip") is None:
        return f"uv pip install --python {shlex.quote(sys.prefix)} {target}"
    return f"{shlex.quote(sys.executable)} -m pip install {target}"


def _source() -> str:
    """Return what pip installed: a folder or wheel of this machine, else the package's name."""
    # Only an error needs it.
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        text = distribution("hpctrain").read_text("direct_url.json")
    except PackageNotFoundError:
        text = None
    address = urlsplit(json.loads(text)["url"] if text else "")
    path = Path(unquote(address.path))
    return str(path) if address.scheme == "file" and path.exists() else "hpctrain"
