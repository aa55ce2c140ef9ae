"""Origin of a line of a rendered script: the line of the job file, if there is one."""

from __future__ import annotations

import re

from msgspec.structs import replace

from hpc_train.base.finding import LintFinding
from hpc_train.plans.plan import LaunchPlan
from hpc_train.runs.run import Script

_DIRECTIVE = re.compile(r"#SBATCH --([a-z-]+)")
_EXPORT = re.compile(r"export (\w+)=")
# sbatch's option -> its setting, if the names differ.
_SETTINGS = {"job-name": "name", "ntasks-per-node": "tasks_per_node", "gres": "gpus_per_node"}


def at_origin(finding: LintFinding, script: Script, plan: LaunchPlan, label: str) -> LintFinding:
    """Return the finding with the line of the job file; otherwise line 1, and the place as text."""
    origin = _origin(finding, script, plan)
    match = re.fullmatch(rf"{re.escape(label)}:(\d+)", origin)
    if match:
        return replace(finding, line=int(match[1]))
    place = origin or f"line {finding.line} of the rendered script"
    return replace(finding, line=1, message=f"{finding.message} ({place})")


def _origin(finding: LintFinding, script: Script, plan: LaunchPlan) -> str:
    line = script.text.split("\n")[finding.line - 1]
    directive, exported = _DIRECTIVE.match(line), _EXPORT.match(line)
    key = ""
    if directive:
        key = _SETTINGS.get(directive[1], directive[1].replace("-", "_"))
    elif exported:
        names = re.findall(r" (\w+)=", line) or [exported[1]]
        key = f"env.{next((name for name in names if name in finding.message), names[0])}"
    elif line.strip():
        lines = (name for name, setting in plan.settings.items() if name.startswith("setup."))
        key = next((name for name in lines if line in str(plan.settings[name].value)), "")
        if not key and any(str(word) in line for word in plan.settings["command"].value):
            key = "command"
    return plan.settings[key].origin if key in plan.settings else ""
