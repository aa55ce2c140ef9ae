"""Output that is cut off, empty, of another shape or no text at all is never a traceback."""

import random

import pytest

from hpc_train.base.errors import HpcTrainError
from hpc_train.base.processes import Answer
from hpc_train.machine.draft_profile import draft_slurm
from hpc_train.machine.hardware import gpu_order, guess
from hpc_train.machine.probe_job import kinds, shape
from hpc_train.machine.read_hardware import read_hardware
from hpc_train.slurm.live_cluster import read_cluster
from tests.machine.machines import CLUSTERS, SHAPES, Slurm, output

DAMAGES = ("cut", "empty", "shuffled", "binary", "columns", "numbers")


def damaged(text: str, how: str, chance: random.Random) -> str:
    if how == "cut":
        return text[: chance.randrange(len(text) + 1)]
    if how == "empty":
        return "\n"
    if how == "shuffled":
        lines = text.splitlines()
        chance.shuffle(lines)
        return "\n".join(lines)
    if how == "columns":
        return "\n".join(line[chance.randrange(9) :] for line in text.splitlines())
    if how == "numbers":
        return "".join(chance.choice("09²-٣.") if c.isdigit() else c for c in text)
    return "".join(chr(chance.randrange(256)) if chance.random() < 0.2 else c for c in text)


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", SHAPES)
def test_a_machine(name: str, how: str) -> None:
    for seed in range(20):
        found = read_hardware(damaged(output(name), how, random.Random(seed)))  # noqa: S311
        assert sorted(gpu_order(found)) in ([], list(range(len(found.gpus))))
        assert set(guess(found).interfaces) <= {link.name for link in found.links}


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", CLUSTERS)
def test_a_cluster(name: str, how: str) -> None:
    for seed in range(20):
        chance = random.Random(seed)  # noqa: S311
        slurm = Slurm(name)

        def ask(*argv: str, timeout_s: float = 30.0) -> Answer:
            text = slurm(*argv).text  # noqa: B023 - used before the next turn
            return Answer(text=damaged(text, how, chance) if text else "")  # noqa: B023

        try:
            found = read_cluster(ask)
        except HpcTrainError as failure:
            assert failure.message and failure.hint
            continue
        hardware = {shape(one.nodes[0]): read_hardware(output("ls6")) for one in kinds(found)}
        text = draft_slurm("x", "2026-08-01", found, hardware)
        assert text.isprintable() or all(c.isprintable() or c == "\n" for c in text)
