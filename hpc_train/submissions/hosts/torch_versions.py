"""Whether the hosts of a job have the same torch: ranks with different ones fail, or hang."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence

from hpc_train.model.plan import LaunchPlan, Text
from hpc_train.submissions.hosts.transport import at_once, call

_PYTHON = re.compile(r"\A(?:/.*/)?python[0-9.]*\Z")
_AGENT = "torchrun"
_PRINT = 'import importlib.metadata as m; print("torch", m.version("torch"))'


def asking(plan: LaunchPlan) -> str | None:
    """Return a program of bash that prints the version of torch that the ranks of a plan import.

    The lines of the setup are those of the script. None if it is not known which Python the ranks
    use: that of an image, or of a program that is not Python.
    """
    python = _python_of(plan)
    if python is None or plan.container is not None:
        return None
    modules = (
        *(("module purge",) if plan.modules_purge else ()),
        *(f"module use {shlex.quote(folder)}" for folder in plan.modules_use),
        *(f"module load {shlex.quote(name)}" for name in plan.modules),
    )
    # The folder of the job is not copied yet; one with an environment in it may be there.
    folder = f"cd -- {shlex.quote(plan.workdir or '.')} 2>/dev/null"
    ask = shlex.join((python, "-c", _PRINT))
    return "\n".join((folder, *modules, *plan.setup, f"exec {ask}", ""))


def _python_of(plan: LaunchPlan) -> str | None:
    words = [token.text for token in plan.launch.argv if isinstance(token, Text)]
    found = next((word for word in words if _PYTHON.search(word)), None)
    return found or ("python" if _AGENT in words else None)


def versions(hosts: Sequence[str], program: str) -> dict[str, str]:
    """Return the version of torch on each host; empty if its Python has none or does not start."""
    answers = at_once(lambda name: call(name, "torch", given=program.encode()), hosts)
    return {name: answer.get("torch") or "" for name, answer in zip(hosts, answers, strict=True)}


def others(found: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Return the hosts without the version that most have, each with both versions.

    Of several such versions, it is that of the earliest host.
    """
    counts = Counter(version for version in found.values() if version)
    if not counts:
        return {}
    usual, _ = counts.most_common(1)[0]
    return {name: (version, usual) for name, version in found.items() if version != usual}
