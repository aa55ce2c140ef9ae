"""The errors that a user can cause or correct; each has a message and the next command.

A message states where (file:line or run id), what is wrong and what is allowed; the hint is the
next command. Bugs are never wrapped in these classes.
"""

from collections.abc import Iterable


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
        pattern = ", and a name is not a pattern" if set("*?[") & set(name) else ""
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

    Else the first that begins with it (`cpus`: `cpus_per_node`) or with whose first word it begins
    (`memory`: `mem_per_node`), or one that is only somewhat alike and begins with the same letter.
    """
    import difflib

    spelled = {one.lower(): one for one in known}
    matches = difflib.get_close_matches(name.lower(), spelled, n=1, cutoff=0.75)
    matches = matches or [one for one in spelled if one.startswith(f"{name.lower()}_")]
    matches = matches or [
        one for one in spelled if "_" in one and name.lower().startswith(one.partition("_")[0])
    ]
    initial = [one for one in spelled if one[:1] == name[:1].lower()]
    matches = matches or difflib.get_close_matches(name.lower(), initial, n=1, cutoff=0.6)
    return f"; did you mean {spelled[matches[0]]!r}?" if matches else ""
