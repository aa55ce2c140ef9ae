"""A job -> the study of three or four small sizes that measures what `advise` needs."""

from __future__ import annotations

from pathlib import Path

from hpc_train.errors import SpecError
from hpc_train.model.machine_size import MachineSize
from hpc_train.pipeline.advise import subject
from hpc_train.pipeline.earlier_steps import CALIBRATION
from hpc_train.pipeline.render import Prepared, Request, prepare
from hpc_train.registry import find_batch_system
from hpc_train.specs.override import Override

_ORIGIN = "--calibrate"


def calibration(path: Path, site: str | None, conditions: tuple[str, ...] = ()) -> Prepared:
    """Return the study: one GPU, one node, and two nodes where the site has them, once each.

    Raises:
        HpcTrainError: the file is a study, which measures its own points, or cannot run there.
    """
    found = subject(path, site, conditions)
    if found.study is not None:
        raise SpecError(
            f"{path} is a study: its own points are measured",
            f"hpctrain submit {path} --wait, then hpctrain advise {path}",
        )
    weak = found.program.global_batch is None and found.program.batch is not None
    wanted = {
        "name": CALIBRATION.format(found.program.name),
        "scaling": "weak" if weak else "strong",
        "repetitions": 1,
        **_sizes(
            found.machine, local=find_batch_system(found.profile.value.scheduler).this_machine
        ),
    }
    overrides = tuple(
        Override(key=key, value=value, origin=_ORIGIN) for key, value in wanted.items()
    )
    return prepare(Request(path=path, site=site, overrides=overrides, starts=True))


def _sizes(machine: MachineSize, *, local: bool) -> dict[str, int | str]:
    """Return the sizes of the axes, as the options of `submit` have them."""
    axis = "gpus_per_node" if machine.gpus_per_node else "tasks_per_node"
    inside = "1" if machine.ranks_per_node == 1 else f"1,{machine.ranks_per_node}"
    nodes = "1" if local or machine.max_nodes == 1 else "1,2"
    if "," not in inside + nodes:
        raise SpecError(
            "--calibrate: this machine has one rank on one node: there is nothing to compare",
            "resources.tasks_per_node in the job sets the ranks of a node",
        )
    return {
        key: int(text) if text == "1" else text for key, text in ((axis, inside), ("nodes", nodes))
    }
