"""A plan -> every directive, variable and argument of its script: value, origin, why."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Literal

from msgspec.structs import replace

from hpc_train.base.values import LintFinding, Value
from hpc_train.plans.directives import setting_of
from hpc_train.plans.explanations import Reason, explanations
from hpc_train.plans.launchers.base import MODULES, RANK_WRAPPER, Launcher, find_launcher
from hpc_train.plans.plan import FirstOf, Joined, LaunchPlan, Setting, Text, Token
from hpc_train.runs.run import Script
from hpc_train.sites.batch_system import ABILITIES, find_batch_system
from hpc_train.sites.merge import source_of
from hpc_train.sites.profile import SourcedSite

Kind = Literal["setting", "directive", "variable", "argument", "missing", "node"]
_NONE = Reason(why="")
_RENDEZVOUS = {
    "MASTER_ADDR": ("rendezvous.host", "address of rank 0; found when the job starts"),
    "MASTER_PORT": ("rendezvous.port", "free on rank 0's host when the job starts"),
}


class Explained(Value, frozen=True, kw_only=True):
    """One line of the output; `trap` is a number of docs/linting.md, `source` that of a rule."""

    kind: Kind
    name: str
    value: Any
    origin: str
    why: str
    trap: str = ""
    source: str = ""


def explain(plan: LaunchPlan, site: SourcedSite | None) -> tuple[Explained, ...]:
    """Return the settings, the values in the script in its order, and what the scheduler lacks.

    Values of the site's profile name their source; without a site, none does.
    """
    shown = (pair for pair in plan.settings.items() if not pair[0].startswith("env."))
    items = (
        *(_explained("setting", name, setting.value, setting) for name, setting in shown),
        *_directives(plan),
        *_variables(plan),
        *_arguments(plan, site),
    )
    place = site.near("scheduler") if site else f"site {plan.site}"
    missing = tuple(
        Explained(kind="missing", name=name, value=it, origin=place, why=ABILITIES.get(name, ""))
        for name, it in find_batch_system(plan.scheduler).instead.items()
    )
    if site is None:
        return (*items, *missing)
    keys: dict[str, list[str]] = {}
    for key, place in site.origins.items():
        keys.setdefault(place, []).append(key)
    sourced = (_with_source(item, site, keys.get(item.origin, [])) for item in items)
    return (*sourced, *missing)


def _with_source(item: Explained, site: SourcedSite, keys: Sequence[str]) -> Explained:
    """Add the source of an item.

    `keys` are the keys in the line that the item comes from: the one with the item's name takes
    precedence, then the shortest one.
    """
    if item.source or not keys:
        return item
    name = item.name.rpartition(" ")[2].lstrip("-").rpartition(".")[2].replace("-", "_")
    key = next((one for one in keys if one.rpartition(".")[2] == name), min(keys, key=len))
    source = source_of(site, key)
    return replace(item, source=source.what) if source else item


def _directives(plan: LaunchPlan) -> Iterator[Explained]:
    batch = find_batch_system(plan.scheduler)
    for option, value in plan.directives:
        trap = explanations().directives.get(option, _NONE).trap
        setting = setting_of(option, plan.settings)
        yield _explained("directive", batch.option(option), value, setting, trap)


def _variables(plan: LaunchPlan) -> Iterator[Explained]:
    for key, setting in plan.settings.items():
        if key.startswith("env."):
            yield _explained("variable", key.removeprefix("env."), setting.value, setting)
    if plan.backend:
        setting = plan.settings["backend"]
        yield _explained("variable", "HPCTRAIN_BACKEND", plan.backend, setting)
    for name, (key, why) in _RENDEZVOUS.items():
        origin = plan.settings[key].origin
        yield Explained(kind="variable", name=name, value=None, origin=origin, why=why)
    for name, token in plan.launch.rank_env:
        why = "in each rank, for torch.distributed"
        shown = _shown(token)
        yield Explained(kind="variable", name=name, value=shown, origin=plan.launcher, why=why)


def _arguments(plan: LaunchPlan, site: SourcedSite | None) -> Iterator[Explained]:
    """Explain the options of the launcher, and of the srun before it, up to the job's command."""
    launcher, program = find_launcher(plan.launcher), ""
    reasons: Mapping[str, Reason] = {}
    before = takewhile(lambda token: token != RANK_WRAPPER, plan.launch.argv)
    tokens = (*before, *(plan.launch.agent or ()))
    for index, token in enumerate(tokens):
        word = _shown(token)
        program, reasons = _program(word, plan, launcher) or (program, reasons)
        option, _, value = word.partition("=")
        if not option.startswith("-") or option in ("-m", "-c"):
            continue
        if not value and index + 1 < len(tokens) and not _shown(tokens[index + 1]).startswith("-"):
            value = _shown(tokens[index + 1])
        reason = reasons.get(word) or reasons.get(option, _NONE)
        yield Explained(
            kind="argument",
            name=f"{program} {option}",
            value=value,
            origin=_origin(word, option, plan, site),
            why=reason.why,
            trap=reason.trap,
        )


def _program(
    word: str, plan: LaunchPlan, launcher: Launcher
) -> tuple[str, Mapping[str, Reason]] | None:
    """Return the name of the program that a word starts, and the reasons of its options."""
    if plan.container is not None and word == plan.container.program:
        return plan.container.runtime, {}
    name = MODULES.get(word, word)
    if name not in launcher.programs:
        return None
    return name, explanations().programs.get(name, launcher.reasons)


def _origin(word: str, option: str, plan: LaunchPlan, site: SourcedSite | None) -> str:
    given_by_job = plan.settings.get("launcher_args")
    if given_by_job and word in given_by_job.value:
        return given_by_job.origin
    if site is None:
        return f"rule or site {plan.site}"
    for index, given in enumerate(site.value.launchers.srun_args):
        if given == word:
            return site.near(f"launchers.srun_args.{index}")
    return site.near("launchers.mpi") if option == "--mpi" else "rule"


def _explained(kind: Kind, name: str, value: Any, setting: Setting, trap: str = "") -> Explained:
    origin, why, source = setting.origin, setting.why, setting.source
    return Explained(
        kind=kind, name=name, value=value, origin=origin, why=why, trap=trap, source=source
    )


def _shown(token: Token) -> str:
    if isinstance(token, Joined):
        return "".join(map(_shown, token.parts))
    if isinstance(token, FirstOf):
        return " or ".join(f"${name}" for name in token.names)
    return token.text if isinstance(token, Text) else f"${token.name}"


def text_of(value: Any) -> str:
    """Return a value in the notation of input files."""
    if isinstance(value, (list, tuple)):
        return shlex.join(map(str, value))
    return "--" if value is None else str(value)


_DIRECTIVE = re.compile(r"#SBATCH --([a-z-]+)")
_EXPORT = re.compile(r"export (\w+)=")


def at_origin(finding: LintFinding, script: Script, plan: LaunchPlan, label: str) -> LintFinding:
    """Return the finding with the line of the job file; otherwise line 1, and the place as text."""
    origin = _line_origin(finding, script, plan)
    match = re.fullmatch(rf"{re.escape(label)}:(\d+)", origin)
    if match:
        return replace(finding, line=int(match[1]))
    place = origin or f"line {finding.line} of the rendered script"
    return replace(finding, line=1, message=f"{finding.message} ({place})")


def _line_origin(finding: LintFinding, script: Script, plan: LaunchPlan) -> str:
    line = script.text.split("\n")[finding.line - 1]
    if directive := _DIRECTIVE.match(line):
        return setting_of(directive[1], plan.settings).origin
    exported, key = _EXPORT.match(line), ""
    if exported:
        names = re.findall(r" (\w+)=", line) or [exported[1]]
        key = f"env.{next((name for name in names if name in finding.message), names[0])}"
    if line.strip() and key not in plan.settings:
        lines = (name for name, setting in plan.settings.items() if name.startswith("setup."))
        key = next((name for name in lines if line in str(plan.settings[name].value)), "")
        if (
            not key
            and not exported
            and any(str(word) in line for word in plan.settings["command"].value)
        ):
            key = "command"
    return plan.settings[key].origin if key in plan.settings else ""
