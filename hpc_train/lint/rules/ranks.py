"""What several rules ask about launches."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.lint.launches import Launch
from hpc_train.lint.script import Script

_STARTERS = ("python", "torchrun", "accelerate", "deepspeed")


def rank_launches(script: Script) -> Iterator[Launch]:
    """Yield the launches of training: not `srun hostname`, not `python -c …`."""
    for launch in script.launches:
        if launch.starter in _STARTERS and not _is_question(launch):
            yield launch


def _is_question(launch: Launch) -> bool:
    """`python -c`, `python -V` and `python -m pip` ask or install something."""
    texts = [word.text for word in launch.words]
    if launch.starter != "python":
        return "--help" in texts
    start = next(i for i, text in enumerate(texts) if text.rpartition("/")[2].startswith("python"))
    rest = texts[start + 1 : start + 3]
    asking = rest[:1] in (["-c"], ["-V"], ["--version"], ["-"], [])
    return asking or rest in (["-m", "pip"], ["-m", "venv"], ["-m", "torch.utils.collect_env"])


def tasks_of(launch: Launch, script: Script) -> int | None:
    """Return how many tasks an srun starts, as far as it is known."""
    option = launch.option("ntasks")
    if option:
        return script.values.number(option.value)
    nodes, each = launch.option("nodes"), launch.option("ntasks-per-node")
    if not nodes and not each:
        return script.asked.tasks
    count = script.values.number(nodes.value) if nodes else script.asked.nodes
    per_node = script.values.number(each.value) if each else script.asked.tasks_per_node
    return count * per_node if count and per_node else None


def starts_several(launch: Launch, script: Script) -> bool:
    """Return whether an srun surely starts more than one task."""
    tasks = tasks_of(launch, script)
    if tasks is None and not launch.option("ntasks", "nodes", "ntasks-per-node"):
        tasks = script.asked.tasks_per_node
    return tasks is not None and tasks > 1


def nodes_of(launch: Launch, script: Script) -> int | None:
    """Return on how many nodes an srun starts tasks, as far as it is known."""
    option = launch.option("nodes")
    return script.values.number(option.value) if option else script.asked.nodes
