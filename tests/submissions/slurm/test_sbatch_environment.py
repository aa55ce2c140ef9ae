"""What a submission leaves behind of the shell it is made in."""

from __future__ import annotations

import pytest

from hpc_train.model.submission import SlurmEndpoint
from hpc_train.submissions.slurm.sbatch_environment import (
    as_arguments,
    environment_changes,
    notices,
    option_of,
)

INSIDE = {
    "SLURM_JOB_ID": "7",
    "SLURM_CPU_BIND": "mask",
    "PMIX_RANK": "0",
    "OMPI_COMM_WORLD_RANK": "0",
    "SLURM_CONF": "/etc/slurm.conf",
    "HOME": "/root",
}


def test_the_outer_job_is_removed_and_named() -> None:
    changes = environment_changes(INSIDE, SlurmEndpoint(), ())
    assert changes == dict.fromkeys(
        ("SLURM_JOB_ID", "SLURM_CPU_BIND", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
    )
    (said,) = notices(INSIDE, ())
    assert said.startswith("this shell is inside Slurm job 7; 4 of its variables (SLURM_JOB_ID,")


@pytest.mark.parametrize(
    ("variable", "option"),
    [
        ("SBATCH_PARTITION", "partition"),
        ("SBATCH_TIMELIMIT", "time"),
        ("SBATCH_MEM_PER_NODE", "mem"),
        ("SBATCH_GPUS_PER_NODE", "gpus-per-node"),
    ],
)
def test_a_variable_names_its_option(variable: str, option: str) -> None:
    assert option_of(variable) == option


def test_what_the_script_sets_wins_and_the_rest_stays() -> None:
    found = {"SBATCH_PARTITION": "long", "SBATCH_ACCOUNT": "a", "SBATCH_WAIT": "1"}
    found["SBATCH_OUTPUT"] = "mine.log"
    ignored = {"SBATCH_OUTPUT", "SBATCH_PARTITION", "SBATCH_WAIT"}
    assert set(environment_changes(found, SlurmEndpoint(), ["partition"])) == ignored
    assert notices(found, ["partition"]) == (
        "SBATCH_ACCOUNT=a is effective: sbatch reads it as --account",
        "SBATCH_OUTPUT=mine.log is ignored: the submission sets --output itself",
        "SBATCH_PARTITION=long is ignored: the script sets --partition itself",
        "SBATCH_WAIT=1 is ignored: submit never waits (--wait of hpctrain follows the runs)",
    )


def test_a_variable_that_sbatch_does_not_read_is_told() -> None:
    found = {"SBATCH_PARTITIONS": "long", "SBATCH_NODES": "2"}
    assert environment_changes(found, SlurmEndpoint(), ["nodes", "partition"]) == {}
    assert notices(found, ["nodes", "partition"]) == (
        "SBATCH_NODES=2: sbatch reads no variable of that name",
        "SBATCH_PARTITIONS=long: sbatch reads no variable of that name; did you mean 'PARTITION'?",
    )


def test_a_clusters_conf_is_given_unless_there_is_one() -> None:
    cluster = SlurmEndpoint(conf="/lab/slurm.conf")
    assert environment_changes({}, cluster, ())["SLURM_CONF"] == "/lab/slurm.conf"
    assert "SLURM_CONF" not in environment_changes({"SLURM_CONF": "/mine"}, cluster, ())


def test_an_ordinary_shell_needs_no_word() -> None:
    assert notices({"HOME": "/root", "SLURM_CONF": "/x"}, ["partition"]) == ()


OWN = {
    "OMPI_MCA_btl_tcp_if_include": "ib0",
    "PMIX_MCA_gds": "hash",
    "PRTE_MCA_rmaps": "x",
    "LOCAL_SCRATCH": "/scratch",
}


def test_what_a_user_told_mpi_stays_outside_a_job() -> None:
    ranks = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}
    assert set(environment_changes(OWN | ranks, SlurmEndpoint(), ())) == set(ranks)
    inside = OWN | ranks | {"SLURM_JOB_ID": "7"}
    assert set(environment_changes(inside, SlurmEndpoint(), ())) == set(inside)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["RANK"], "RANK of this shell is not passed on"),
        (["A_B", "RANK", "PMIX_RANK"], "RANK, PMIX_RANK of this shell are not passed on"),
        (
            ["RANK", "PMI_ID", "NNODES", "PET_X", "HPCTRAIN_TURN"],
            "RANK, PMI_ID, NNODES and 2 more of this shell are not passed on",
        ),
    ],
)
def test_what_is_left_behind_outside_a_job_is_named(names: list[str], said: str) -> None:
    assert notices(dict.fromkeys(names, "1"), ()) == (said,)


@pytest.mark.parametrize("name", ["SBATCH_CLUSTERS", "SLURM_CLUSTERS"])
def test_the_clusters_of_the_shell_are_in_force_unless_the_script_names_them(name: str) -> None:
    assert environment_changes({name: "far"}, SlurmEndpoint(), ()) == {}
    (said,) = notices({name: "far"}, ())
    assert said == f"{name}=far is effective: sbatch reads it as --clusters"
    assert environment_changes({name: "far"}, SlurmEndpoint(), ["clusters"]) == {name: None}
    (said,) = notices({name: "far"}, ["clusters"])
    assert said == f"{name}=far is ignored: the script sets --clusters itself"


def test_changes_are_a_call_of_env_and_no_changes_are_none() -> None:
    assert as_arguments({"A": None, "B": "x y"}) == ["env", "-u", "A", "B=x y"]
    assert as_arguments({}) == []
