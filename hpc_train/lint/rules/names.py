"""Rules on names: variables that no program reads, or that were renamed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from hpc_train.lint.nccl_names import (
    DEPRECATED,
    DOCUMENTED,
    FAMILIES,
    NEVER,
    PLUGINS,
    REMOVED,
    TORCH_RENAMED,
    UNDOCUMENTED,
)
from hpc_train.lint.rule import Edit, Hit, Subject, fixable, rule
from hpc_train.lint.variables import Assignment
from hpc_train.model.versions import older

_PLACES = re.compile(r"_(HOME|ROOT|DIR|PATH|PREFIX|VERSION|LIBRARY|LIB|LIBS|TESTS?|BIN|ARGS|OPTS)$")
_EVERYTHING = {*DOCUMENTED, *UNDOCUMENTED, *REMOVED, *DEPRECATED, *NEVER, *TORCH_RENAMED}


def _exported(subject: Subject) -> Iterator[Assignment]:
    """Yield the exported NCCL_ variables."""
    for found in subject.script.assignments:
        if found.name.startswith("NCCL_") and found.exported:
            yield found


def plugin_of(name: str) -> tuple[str, str] | None:
    """Return the plug-in that reads a variable, and the fabric where it runs."""
    for start, reader in PLUGINS.items():
        if name.startswith(start):
            return reader
    return None


def _known(name: str) -> bool:
    return name in _EVERYTHING or name.startswith(FAMILIES) or plugin_of(name) is not None


@rule(
    "HT501",
    "warning",
    "NCCL variable that is gone",
    why="NCCL silently ignores a variable that it no longer has.",
    advice="leave it out, or set its successor",
)
def removed_name(subject: Subject) -> Iterator[Hit]:
    version = subject.context.nccl
    for found in _exported(subject):
        if found.name not in REMOVED:
            continue
        gone, instead = REMOVED[found.name]
        if not older(version, gone):
            yield Hit(
                line=found.line,
                message=f"{found.name} has no effect: gone since NCCL {gone}",
                advice=f"instead: {instead}",
                severity=None if version or older(gone, "2.25") else "info",
            )


@rule(
    "HT502",
    "warning",
    "no NCCL variable of that name",
    why="NCCL silently ignores unknown variables: with a typing error the default remains "
    "effective.",
    advice="correct the name, or leave it out",
)
def unknown_name(subject: Subject) -> Iterator[Hit]:
    for found in _exported(subject):
        name = found.name
        if name in NEVER:
            advice = f"instead: {NEVER[name]}"
            yield Hit(line=found.line, message=f"no NCCL reads {name}", advice=advice)
        elif not _known(name) and not _PLACES.search(name):
            near = difflib.get_close_matches(name, [*DOCUMENTED, *UNDOCUMENTED], n=1, cutoff=0.8)
            hint = f"; did you mean {near[0]}?" if near else ""
            yield Hit(
                line=found.line,
                message=f"NCCL (up to 2.32) has no variable {name}{hint}",
                # A newer NCCL or a plug-in may know it.
                severity=None if near else "info",
            )


@rule(
    "HT503",
    "info",
    "undocumented NCCL variable",
    why="NCCL reads it, but its reference does not mention it: its meaning may change with "
    "any version.",
    advice="say in a comment why it is needed and for which version",
)
def undocumented_name(subject: Subject) -> Iterator[Hit]:
    for found in _exported(subject):
        if found.name in UNDOCUMENTED or found.name.startswith(FAMILIES):
            yield Hit(line=found.line, message=f"{found.name} is undocumented")


@rule(
    "HT504",
    "info",
    "variable of a plug-in",
    why="NCCL itself does not read it, a plug-in does: without that plug-in it has no effect.",
    advice="remove it unless the plug-in is loaded (see NCCL_DEBUG=INFO)",
)
def plugin_name(subject: Subject) -> Iterator[Hit]:
    script, fabric = subject.script, subject.context.fabric
    if "google" in script.text.lower() or script.sets("NCCL_NET_PLUGIN"):
        return
    for found in _exported(subject):
        reader = plugin_of(found.name)
        if reader is None:
            continue
        elsewhere = fabric is not None and fabric != reader[1]
        where = f"; this site's fabric is {fabric}" if elsewhere else ""
        yield Hit(
            line=found.line,
            message=f"{found.name} is read by {reader[0]} only{where}",
            severity="warning" if elsewhere else None,
        )


@rule(
    "HT505",
    "warning",
    "NCCL variable from a later version",
    why="An NCCL that is older than the variable silently ignores it.",
    advice="leave it out, or use a newer NCCL",
)
def too_new(subject: Subject) -> Iterator[Hit]:
    version = subject.context.nccl
    for found in _exported(subject):
        since = DOCUMENTED.get(found.name)
        if since and older(version, since):
            message = f"{found.name} came with NCCL {since}, this is {version}"
            yield Hit(line=found.line, message=message)


@rule(
    "HT506",
    "info",
    "deprecated NCCL variable",
    why="It still works, and will be removed in a later version; of the old and the new name the "
    "stricter value is used. Leave the choice of channels to NCCL unless a measurement shows a "
    "benefit.",
    advice="leave it out, or set its successor",
)
def deprecated_name(subject: Subject) -> Iterator[Hit]:
    version = subject.context.nccl
    for found in _exported(subject):
        if found.name in DEPRECATED:
            since, successor = DEPRECATED[found.name]
            yield Hit(
                line=found.line,
                message=f"{found.name} is deprecated since NCCL {since}",
                advice=f"instead: {successor}",
                severity="warning" if version and not older(version, since) else None,
            )


@fixable
@rule(
    "HT507",
    "warning",
    "PyTorch's variable under its old name",
    why="These are PyTorch's, not NCCL's, and were renamed: TORCH_NCCL_… in torch 2.2, "
    "TORCH_FR_… in 2.9. The old names still work with a warning in the log of each rank, and "
    "will go.",
    advice="write the new name",
)
def renamed_by_torch(subject: Subject) -> Iterator[Hit]:
    for found in subject.script.assignments:
        if found.name not in TORCH_RENAMED:
            continue
        new, since = TORCH_RENAMED[found.name]
        recent = new.startswith("TORCH_FR_")
        edit = Edit(line=found.line, before=f"{found.name}=", after=f"{new}=")
        yield Hit(
            line=found.line,
            message=f"{found.name} is {new} since torch {since}",
            # A torch before 2.9 knows only the old name.
            severity="info" if recent else None,
            edit=None if recent else edit,
        )


@fixable
@rule(
    "HT508",
    "error",
    "PRRTE_MCA_",
    why="The runtime of Open MPI 5 is called PRRTE, but reads PRTE_MCA_…, with one R: "
    "PRRTE_MCA_… has no effect.",
    advice="write PRTE_MCA_…",
)
def prrte(subject: Subject) -> Iterator[Hit]:
    for found in subject.script.assignments:
        if found.name.startswith("PRRTE_MCA_"):
            edit = Edit(line=found.line, before="PRRTE_MCA_", after="PRTE_MCA_")
            yield Hit(
                line=found.line, message=f"{found.name}: no program reads PRRTE_MCA_", edit=edit
            )
