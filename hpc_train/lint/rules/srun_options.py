"""Rules on the names and values of srun's options: what srun refuses."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from hpc_train.lint.option_parser import Option
from hpc_train.lint.option_values import is_unknown, srun_value_forms
from hpc_train.lint.plugin_options import with_plugins
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.rules.directive_syntax import NO_LIMIT, unknown_names
from hpc_train.lint.rules.option_values import ambiguities, missing_or_extra, refusals
from hpc_train.model.units import slurm_seconds
from hpc_train.slurm_options import srun_grammar


def _options(subject: Subject) -> Iterator[Option]:
    """Yield the options of srun commands whose names the shell does not change."""
    for launch in subject.script.launches:
        if launch.outer == "srun":
            yield from (one for one in launch.options if not is_unknown(one.spelled))


@rule(
    "HT211",
    "error",
    "value that srun refuses",
    why="srun checks these values before it starts a step and exits: no rank starts.",
    advice="write one of the allowed values; `man srun` explains them",
)
def refused(subject: Subject) -> Iterator[RuleHit]:
    for option in _options(subject):
        # An empty value may be a placeholder, --nodes=<n>, that the shell takes for a redirection.
        if option.known and option.value != "":
            yield from missing_or_extra(option, "srun", srun_grammar())
            yield from refusals(option, "srun", srun_value_forms())
            yield from _unreadable_time(option)


def _unreadable_time(option: Option) -> Iterator[RuleHit]:
    value = option.value or ""
    if option.name not in ("time", "time-min") or not value or is_unknown(value):
        return
    if slurm_seconds(value) is None and value.upper() not in NO_LIMIT:
        yield RuleHit(
            line=option.line,
            message=f"srun cannot parse {value!r} as a time",
            advice="write hours:minutes:seconds, e.g. --time=04:00:00",
        )


@rule(
    "HT212",
    "warning",
    "unknown or ambiguous option of srun",
    why="srun exits at an option that neither Slurm nor a plug-in of the site defines, and at the "
    "beginning of a name that fits several options.",
    advice="write the whole name; `srun --help` lists all options, including those of the site's "
    "plug-ins, which a site profile declares in plugin_options",
)
def unknown(subject: Subject) -> Iterator[RuleHit]:
    site = subject.context.site
    known = with_plugins(srun_grammar(), site).long
    for option in _options(subject):
        yield from unknown_names(option, known, site)
        for hit in ambiguities(option):
            yield replace(hit, severity="error")
