"""`hpctrain bench`: a run with its table, a script for a cluster, and what is refused."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Hpctrain
from tests.logs.parse_text import parse

SIZES = ("--smallest", "64K", "--largest", "256K", "--iterations", "2")


@pytest.mark.torch
@pytest.mark.process
def test_a_run_here_prints_the_table_that_collect_reads(hpctrain: Hpctrain) -> None:
    pytest.importorskip("torch")
    done = hpctrain("bench", "all_reduce", "--ranks", "2", *SIZES)
    assert done.returncode == 0, done.stderr
    assert "next: hpctrain collect bench-allreduce" in done.stderr
    printed = [hit for _, hit, _ in parse(done.stdout.encode(), "nccl_tests")]
    values = {(hit.metric, hit.variant, hit.message_size): hit.value for hit in printed}
    assert values["world_size", "", None] == 2
    assert values["wrong_values", "", None] == 0
    assert {size for *_, size in values if size} == {2**16, 2**18}
    assert len(list(Path("results/bench-allreduce").glob("*/status.json"))) == 1
    lines = hpctrain("collect", "bench-allreduce", "--json").stdout.splitlines()
    records = [one for one in map(json.loads, lines) if one["parser"] == "nccl_tests"]
    assert {
        (one["metric"], one["variant"], one["message_size"]): one["value"] for one in records
    } == values


def test_a_job_of_a_cluster_has_the_options_of_submit(hpctrain: Hpctrain) -> None:
    where = ("--site", "slurm-generic", "--nodes", "2", "--gpus-per-node", "4")
    own = ("--account", "a1", "--cpus-per-task", "8")
    done = hpctrain("bench", "allgather", *where, *own, "-e", "8G", "-d", "bfloat16", "--dry-run")
    assert done.returncode == 0, done.stderr
    script = " ".join(done.stdout.replace("\\\n", " ").split())
    assert "#SBATCH --nodes=2" in script
    assert "#SBATCH --time=00:30:00" in script
    assert "-m hpc_train.trainer.collectives allgather --smallest 1K --largest 8G" in script
    assert "--dtype bfloat16" in script
    assert "export NCCL_DEBUG=INFO" in script


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("allreduce",), "allreduce needs at least 2 ranks, and this job has 1"),
        (("broadcast", "--ranks", "2", "-r", "2"), "--root 2: the ranks are 0 to 1"),
        (("alltoall", "--ranks", "2", "-b", "8", "-e", "31"), "16 B for each rank"),
        (("allreduce", "--ranks", "99999999"), "hpctrain: --ranks: resources.tasks_per_node: must"),
        (("allreduce", "-e", "8X"), "--largest: '8X' is not a message size; examples: 8, 64K"),
        (("allreduce", "-e", "8"), "--smallest 1K is more than --largest 8"),
    ],
)
def test_what_cannot_be_measured_is_refused_and_leaves_nothing(
    hpctrain: Hpctrain, words: tuple[str, ...], text: str
) -> None:
    done = hpctrain("bench", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path("results").exists()
