"""Whether the hosts of a job have the same torch and mpirun: ranks of two kinds fail, or hang."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence

from hpc_train.model.plan import JobVar, LaunchPlan, Text
from hpc_train.submissions.hosts.transport import at_once, call

_PYTHON = re.compile(r"\A(?:/.*/)?python[0-9.]*\Z")
# The launcher's variable in argv: the script starts mpirun on several hosts.
_MPI = "mpi_hosts"
_PRINT = 'import importlib.metadata as m; print("version torch", m.version("torch"))'
_MPI_VERSION = "mpirun --version | sed -n '1s/^mpirun /version mpirun /p'"


def asking(plan: LaunchPlan) -> str | None:
    """Return a program of bash that prints the versions that the ranks of a plan use.

    The lines of the setup are those of the script. None if it is not known what the ranks use:
    that of an image, or of a program that is neither Python nor started by mpirun.
    """
    argv = plan.launch.argv
    words = [token.text for token in argv if isinstance(token, Text)]
    python = next((word for word in words if _PYTHON.search(word)), None)
    asked = [_MPI_VERSION] if JobVar(name=_MPI) in argv else []
    asked += [f"exec {shlex.join((python, '-c', _PRINT))}"] if python else []
    if not asked or plan.container is not None:
        return None
    modules = (
        *(("module purge",) if plan.modules_purge else ()),
        *(f"module use {shlex.quote(folder)}" for folder in plan.modules_use),
        *(f"module load {shlex.quote(name)}" for name in plan.modules),
    )
    # The folder of the job is not copied yet; one with an environment in it may be there.
    folder = f"cd -- {shlex.quote(plan.workdir or '.')} 2>/dev/null"
    return "\n".join((folder, *modules, *plan.setup, *asked, ""))


def versions(hosts: Sequence[str], program: str) -> dict[str, dict[str, str]]:
    """Return the versions that each host prints, by the name of the program."""
    answers = at_once(lambda name: call(name, "versions", given=program.encode()), hosts)
    return {
        host: dict(
            text.split(" ", 1) for word, text in answer.lines if word == "version" and " " in text
        )
        for host, answer in zip(hosts, answers, strict=True)
    }


def others(found: dict[str, dict[str, str]]) -> dict[str, tuple[str, str, str]]:
    """Return the hosts without a version that most have: the program, and both versions.

    Of several such versions, it is that of the earliest host; a host without the program has "".
    """
    wrong = dict[str, tuple[str, str, str]]()
    for program in dict.fromkeys(name for own in found.values() for name in own):
        counts = Counter(own[program] for own in found.values() if program in own)
        usual, _ = counts.most_common(1)[0]
        for host, own in found.items():
            if own.get(program) != usual:
                wrong.setdefault(host, (program, own.get(program, ""), usual))
    return wrong
