"""Rules on the names of variables: unknown, removed, deprecated and renamed variables."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from hpc_train.lint.nccl_variables import nccl_variables
from hpc_train.lint.rule import Edit, RuleHit, Subject, fixable, rule
from hpc_train.lint.script_variables import Assignment
from hpc_train.model.version_ranges import older

_PLACES = re.compile(r"_(HOME|ROOT|DIR|PATH|PREFIX|VERSION|LIBRARY|LIB|LIBS|TESTS?|BIN|ARGS|OPTS)$")


def _exported(subject: Subject) -> Iterator[Assignment]:
    """Yield the exported NCCL_ variables."""
    for found in subject.script.assignments:
        if found.name.startswith("NCCL_") and found.exported:
            yield found


@rule(
    "HT501",
    "warning",
    "removed NCCL variable",
    why="NCCL silently ignores a variable that it no longer has.",
    advice="leave it out, or set its successor",
)
def removed_name(subject: Subject) -> Iterator[RuleHit]:
    version = subject.context.nccl
    for found in _exported(subject):
        removed = nccl_variables().removed.get(found.name)
        if removed is None:
            continue
        gone = removed.version
        if not older(version, gone):
            yield RuleHit(
                line=found.line,
                message=f"{found.name} has no effect: removed in NCCL {gone}",
                advice=f"instead: {removed.instead}",
                severity=None if version or older(gone, "2.25") else "info",
            )


@rule(
    "HT502",
    "warning",
    "unknown NCCL variable",
    why="NCCL silently ignores unknown variables: with a typing error the default remains "
    "effective.",
    advice="correct the name, or leave it out",
)
def unknown_name(subject: Subject) -> Iterator[RuleHit]:
    known = nccl_variables()
    for found in _exported(subject):
        name = found.name
        if name in known.never_read:
            advice = f"instead: {known.never_read[name]}"
            yield RuleHit(
                line=found.line, message=f"no version of NCCL reads {name}", advice=advice
            )
        elif not known.knows(name) and not _PLACES.search(name):
            read = [*known.documented, *known.undocumented]
            near = difflib.get_close_matches(name, read, n=1, cutoff=0.8)
            hint = f"; did you mean {near[0]}?" if near else ""
            yield RuleHit(
                line=found.line,
                message=f"NCCL (up to 2.32) has no variable {name}{hint}",
                # A newer NCCL or a plug-in may read it.
                severity=None if near else "info",
            )


@rule(
    "HT503",
    "info",
    "undocumented NCCL variable",
    why="NCCL reads it, but its reference does not mention it: its meaning may change with "
    "any version.",
    advice="state in a comment why it is needed and for which version",
)
def undocumented_name(subject: Subject) -> Iterator[RuleHit]:
    known = nccl_variables()
    for found in _exported(subject):
        family = found.name.startswith(known.undocumented_families)
        if family or found.name in known.undocumented:
            yield RuleHit(line=found.line, message=f"{found.name} is undocumented")


@rule(
    "HT504",
    "info",
    "variable of a plug-in",
    why="A plug-in reads it, not NCCL itself: without that plug-in it has no effect.",
    advice="remove it unless the plug-in is loaded (see NCCL_DEBUG=INFO)",
)
def plugin_name(subject: Subject) -> Iterator[RuleHit]:
    script, fabric = subject.script, subject.context.fabric
    if "google" in script.text.lower() or script.sets("NCCL_NET_PLUGIN"):
        return
    for found in _exported(subject):
        plugin = nccl_variables().plugin_of(found.name)
        if plugin is None:
            continue
        elsewhere = fabric is not None and fabric != plugin.fabric
        where = f"; this site's fabric is {fabric}" if elsewhere else ""
        yield RuleHit(
            line=found.line,
            message=f"{found.name} is read by {plugin.reader} only{where}",
            severity="warning" if elsewhere else None,
        )


@rule(
    "HT505",
    "warning",
    "NCCL variable from a later version",
    why="An NCCL that is older than the variable silently ignores it.",
    advice="leave it out, or use a newer NCCL",
)
def too_new(subject: Subject) -> Iterator[RuleHit]:
    version = subject.context.nccl
    for found in _exported(subject):
        since = nccl_variables().documented.get(found.name)
        if since and older(version, since):
            message = f"{found.name} was added in NCCL {since}; this is {version}"
            yield RuleHit(line=found.line, message=message)


@rule(
    "HT506",
    "info",
    "deprecated NCCL variable",
    why="It still works, and will be removed in a later version; of the old and the new name the "
    "stricter value is used. Leave the choice of channels to NCCL unless a measurement shows a "
    "benefit.",
    advice="leave it out, or set its successor",
)
def deprecated_name(subject: Subject) -> Iterator[RuleHit]:
    version = subject.context.nccl
    for found in _exported(subject):
        deprecated = nccl_variables().deprecated.get(found.name)
        if deprecated is not None:
            since = deprecated.version
            yield RuleHit(
                line=found.line,
                message=f"{found.name} is deprecated since NCCL {since}",
                advice=f"instead: {deprecated.instead}",
                severity="warning" if version and not older(version, since) else None,
            )


@fixable
@rule(
    "HT507",
    "info",
    "renamed PyTorch variable",
    why="PyTorch, not NCCL, reads these variables, and renamed them: to TORCH_NCCL_… in torch 2.2, "
    "to TORCH_FR_… in 2.9. The old names still work, with a warning in the log of each rank, and "
    "will be removed.",
    advice="write the new name",
)
def renamed_by_torch(subject: Subject) -> Iterator[RuleHit]:
    for found in subject.script.assignments:
        renamed = nccl_variables().renamed_by_torch.get(found.name)
        if renamed is None:
            continue
        new = renamed.name
        recent = new.startswith("TORCH_FR_")
        edit = Edit(line=found.line, before=f"{found.name}=", after=f"{new}=")
        yield RuleHit(
            line=found.line,
            message=f"{found.name} is {new} since torch {renamed.version}",
            # A torch before 2.9 reads only the old name.
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
def prrte(subject: Subject) -> Iterator[RuleHit]:
    for found in subject.script.assignments:
        if found.name.startswith("PRRTE_MCA_"):
            edit = Edit(line=found.line, before="PRRTE_MCA_", after="PRTE_MCA_")
            yield RuleHit(
                line=found.line, message=f"{found.name}: no program reads PRRTE_MCA_", edit=edit
            )
