"""A job's own options of its launcher: none that the plan has said already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from hpc_train.errors import PlanError
from hpc_train.model.plan import Launch, LaunchRequest, Text, Token
from hpc_train.plans.context import Job
from hpc_train.plans.launchers.base import RANK_WRAPPER

_KEYS = {
    "nodes": "resources.nodes",
    "nnodes": "resources.nodes",
    "ntasks": "resources.tasks_per_node",
    "ntasks-per-node": "resources.tasks_per_node",
    "nproc-per-node": "resources.tasks_per_node",
    "cpus-per-task": "resources.cpus_per_task",
    "export": "env",
}
_STARTERS = (Text(text="srun"),)


def check_arguments(job: Job, request: LaunchRequest, launch: Launch) -> None:
    """Refuse an option that the launcher is given already: the last one would win in silence.

    Raises:
        PlanError: with the key to use instead.
    """
    words = [*_before_ranks(launch.argv), *_before_ranks(launch.agent or ())]
    said = Counter(map(_option, words))
    # A job's word may stand behind the site's.
    said.subtract(map(_option, (*request.srun_args, *request.mpirun_args, *request.args)))
    if request.container:
        box = (*request.container.around, *request.container.step)
        said.subtract(map(_option, _before_ranks(box)))
    if launch.argv[:1] == _STARTERS and not launch.agent:
        said["export"] = 1
    for option in filter(None, map(_option, request.args)):
        if said[option] > 0:
            key = _KEYS.get(option)
            raise PlanError(
                f"{job.near('launcher_args')}: launcher_args: hpctrain gives --{option} by itself",
                f"say it with {key}" if key else "take it out",
            )


def _before_ranks(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        if token == RANK_WRAPPER:
            return
        if isinstance(token, Text):
            yield token.text


def _option(word: str) -> str:
    """Return the long name of an option, as torchrun and accelerate may write it in two ways."""
    if not word.startswith("--"):
        return ""
    return word[2:].partition("=")[0].replace("_", "-")
