"""Jobs of a line of bash, and studies whose runs print what a training prints that scales."""

from typing import Any

# 0.8 s a step on one rank, 0.4 s on two, 0.2 s on four.
_TRAIN = """\
for step in 1 2 3; do
  echo "@hpct {\\"event\\": \\"step\\", \\"step\\": $step, \\"step_time\\": 0.$((8 / WORLD_SIZE)), \
\\"samples\\": $((8 / WORLD_SIZE))}"
done
echo "@hpct {\\"event\\": \\"end\\", \\"global_batch_size\\": 8, \\"world_size\\": $WORLD_SIZE}"
echo "on $(hostname)"
"""


def job(
    name: str, script: str, nodes: int = 1, tasks: int = 1, time: str = "5m", **keys: Any
) -> dict[str, Any]:
    """Return a job whose ranks run a line of bash on a core each; `keys` are others of a job."""
    size = {"nodes": nodes, "tasks_per_node": tasks, "cpus_per_task": 1, "gpus_per_node": 0}
    resources = {**size, "time": time, **keys.pop("resources", {})}
    command = ["bash", "-c", script]
    return {"name": name, "command": command, "launcher": "srun", "resources": resources, **keys}


def study(name: str, before: str = "", **keys: Any) -> dict[str, Any]:
    """Return a study of 1, 2 and 4 nodes, two runs each; `before` is what a rank does first."""
    return {
        "name": name,
        "job": job(name, before + _TRAIN, time="1m"),
        "axes": {"nodes": [1, 2, 4]},
        "repetitions": 2,
        "scaling": "strong",
        "warmup": {"steps": 1},
        **keys,
    }
