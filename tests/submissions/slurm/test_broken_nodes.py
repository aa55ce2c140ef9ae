"""Nodes that Slurm calls broken."""

from __future__ import annotations

from hpc_train.model.submission import SlurmEndpoint
from hpc_train.submissions.slurm.broken_nodes import broken_nodes
from tests.submissions.slurm.fake_slurm import BUSY, FakeSlurm, option


def test_each_broken_node_once(slurm: FakeSlurm) -> None:
    # sinfo --Node names a node once for each of its partitions.
    slurm.on("sinfo", "printf 'n3\\nn1\\nn3\\n'")
    assert broken_nodes(SlurmEndpoint()) == ("n1", "n3")
    (argv,) = slurm.calls("sinfo")
    assert option(argv, "states") == "down,drain,fail"
    assert option(argv, "format") == "%N"


def test_a_silent_slurm_blames_nobody(slurm: FakeSlurm) -> None:
    slurm.on("sinfo", f"echo '{BUSY}' >&2; exit 1")
    assert broken_nodes(SlurmEndpoint()) == ()
