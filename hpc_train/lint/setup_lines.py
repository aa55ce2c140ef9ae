"""Setup lines of a job and its site -> an error, if the shell would read on behind them."""

from __future__ import annotations

from hpc_train.errors import PlanError
from hpc_train.lint.shell.commands import read_commands
from hpc_train.model.plan import LaunchPlan


def check_setup(plan: LaunchPlan) -> None:
    """Refuse setup lines with an open quote, parenthesis or here-document.

    The lines of a job and those of a profile are separate texts; one of them may span lines.

    Raises:
        PlanError: with the line of the job file or of the profile.
    """
    lines = [
        (str(setting.value), setting.origin)
        for key, setting in plan.settings.items()
        if key.startswith("setup.")
    ]
    files = dict.fromkeys(_file(origin) for _, origin in lines)
    for file in files:
        _check([one for one in lines if _file(one[1]) == file])


def _file(origin: str) -> str:
    return origin.rpartition(":")[0] or origin


def _check(lines: list[tuple[str, str]]) -> None:
    unclosed = read_commands("\n".join(text for text, _ in lines)).unclosed
    if not unclosed:
        return
    before = 0
    for text, origin in lines:
        before += text.count("\n") + 1
        if unclosed[0].line <= before:
            raise PlanError(
                f"{origin}: setup: the {unclosed[0].opening} is never closed: {text[:80]}",
                f"close the {unclosed[0].opening}; bash would read the rest of the script as text",
            )
