"""Studies whose runs print the events of a training that scales perfectly, and take no time."""

from __future__ import annotations

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


def study(name: str, before: str = "", **keys: Any) -> dict[str, Any]:
    """Return a study of 1, 2 and 4 nodes, two runs each; `before` is what a rank does first."""
    resources = {"tasks_per_node": 1, "cpus_per_task": 1, "gpus_per_node": 0, "time": "1m"}
    command = ["bash", "-c", before + _TRAIN]
    return {
        "name": name,
        "job": {"command": command, "launcher": "srun", "resources": resources},
        "axes": {"nodes": [1, 2, 4]},
        "repetitions": 2,
        "scaling": "strong",
        "warmup": {"steps": 1},
        **keys,
    }
