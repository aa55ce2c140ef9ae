"""`SOURCE:TARGET:ro` -> Mount; errors name the place."""

from __future__ import annotations

from hpc_train.errors import PlanError
from hpc_train.model.plan import JobVar, Joined, Text
from hpc_train.model.value import Value

_FORM = "write PATH, SOURCE:TARGET or SOURCE:TARGET:ro"
_MODES = ("ro", "rw")


class Mount(Value, frozen=True, kw_only=True):
    """A folder or file of the host, and its path for the ranks; `where` names its line."""

    source: str
    target: str
    read_only: bool
    where: str

    def token(self) -> Text:
        """Return the mount in the notation of the runtimes."""
        return Text(text=f"{self.source}:{self.target}{':ro' if self.read_only else ''}")


def own(variable: str) -> Joined:
    """Return the mount of a folder that is known only inside the job, at the same path."""
    name = JobVar(name=variable)
    return Joined(parts=(name, Text(text=":"), name))


def parse_mount(text: str, where: str) -> Mount:
    """Parse a mount.

    Raises:
        PlanError: it does not have one to three parts, or its path is relative or needs a shell.
    """
    parts = text.split(":")
    mode = parts.pop() if len(parts) == 3 else "rw"
    if len(parts) > 2 or mode not in _MODES or not all(parts):
        raise PlanError(f"{where}: the mount {text!r} is none; {_FORM}")
    for path in parts:
        check_whole(path, where)
    return Mount(source=parts[0], target=parts[-1], read_only=mode == "ro", where=where)


def check_whole(path: str, where: str) -> None:
    """Refuse a relative path, and a path that only a shell would expand.

    Raises:
        PlanError: it is relative, or needs a shell.
    """
    if not path.startswith("/"):
        raise PlanError(f"{where}: {path!r} must be a whole path, from / on; no shell reads it")
    if "$" in path:
        raise PlanError(f"{where}: {path!r}: no shell reads it; write out what $… stands for")


def check_characters(path: str, forbidden: str, runtime: str, where: str) -> None:
    """Refuse characters that a runtime would parse as the end of a path.

    Raises:
        PlanError: one of `forbidden` is in the path.
    """
    found = [character for character in forbidden if character in path]
    if found:
        raise PlanError(
            f"{where}: {runtime} cannot carry {found[0]!r} in a path: {path!r}",
            "use another name for the folder, or a link to it",
        )
