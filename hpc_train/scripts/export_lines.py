"""The export lines of a job: adjacent variables that one place sets for one reason share a line."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.model.plan import JobVar, LaunchPlan, Setting
from hpc_train.scripts.quote_filters import WIDTH, note, sh, token

_PREFIX = "export "


def exports(plan: LaunchPlan, *, notes: bool = True) -> str:
    """Write the exports of a plan; with `notes`, each line ends with origin and reason."""
    lines = []
    for group in _groups(plan):
        assigned = " ".join(_assignment(name, value) for name, value, _ in group)
        settings = [setting for _, _, setting in group]
        remark = note(_shared(settings)) if notes else ""
        lines.append(f"{_PREFIX}{assigned}{remark}\n")
    return "".join(lines)


def _groups(plan: LaunchPlan) -> Iterator[list[tuple[str, str | JobVar, Setting]]]:
    group: list[tuple[str, str | JobVar, Setting]] = []
    width = 0
    for name, value in plan.env:
        setting = plan.settings[f"env.{name}"]
        length = len(_assignment(name, value)) + 1
        if group and not (_one_reason(group[-1][2], setting) and width + length <= WIDTH):
            yield group
            group, width = [], len(_PREFIX)
        group.append((name, value, setting))
        width += length
    if group:
        yield group


def _one_reason(one: Setting, other: Setting) -> bool:
    return bool(one.why) and one.why == other.why and _file(one.origin) == _file(other.origin)


def _file(origin: str) -> str:
    """Return an origin without the number of its line."""
    file, _, line = origin.rpartition(":")
    return file if line.isdigit() else origin


def _shared(settings: list[Setting]) -> Setting:
    """Return a setting with the origins of several: `site.yaml:3-5`."""
    first, last = settings[0], settings[-1]
    if first.origin == last.origin:
        return first
    lines = sorted(int(one.origin.rpartition(":")[2]) for one in settings)
    origin = f"{_file(first.origin)}:{lines[0]}-{lines[-1]}"
    return Setting(value=None, origin=origin, why=first.why)


def _assignment(name: str, value: str | JobVar) -> str:
    return f"{name}={sh(value) if isinstance(value, str) else token(value)}"
