"""Advice for what sbatch says; its words are those of Slurm 22.05."""

from __future__ import annotations

import pytest

from hpc_train.submissions.slurm.sbatch import advice


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("sbatch: error: invalid partition specified: x\nsbatch: error: Batch job submission "
         "failed: Invalid partition name specified", "--partition"),
        ("Batch job submission failed: Invalid account or account/partition combination specified",
         "--account"),
        ("Batch job submission failed: Invalid qos specification", "--qos"),
        ("Batch job submission failed: Node count specification invalid", "%D"),
        ("Batch job submission failed: Requested node configuration is not available", "fewer"),
        ("CPU count per node can not be satisfied; Batch job submission failed: Requested node "
         "configuration is not available", "%c"),
        ("Batch job submission failed: More processors requested than permitted", "fewer nodes"),
        ("Batch job submission failed: Requested time limit is invalid (missing or exceeds some "
         "limit)", "%l"),
        ("QOSMaxSubmitJobPerUserLimit; Batch job submission failed: Job violates accounting/QOS "
         "policy (job submit limit, user's size and/or time limits)", "sacctmgr show qos"),
        ("Batch job submission failed: Invalid feature specification", "--constraint"),
        ("Batch job submission failed: Invalid generic resource (gres) specification", "GPUs"),
        ("Batch job submission failed: Memory specification can not be satisfied", "--mem"),
        ("Batch job submission failed: Access/permission denied", "may not use"),
        ("Batch job submission failed: Invalid job array specification", "max_array_size"),
        ("Batch job submission failed: Job dependency problem", "dependency"),
    ],
)  # fmt: skip
def test_a_refusal_has_a_next_step(said: str, word: str) -> None:
    assert word in advice(said)


def test_unknown_words_get_no_advice() -> None:
    assert advice("Batch job submission failed: Kittens") == ""
    assert advice("") == ""
