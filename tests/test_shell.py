"""Processes: how they end, and what they do not inherit."""

from __future__ import annotations

from hpc_train.shell import clean_environment, run


def test_a_process_is_reported_as_it_ended() -> None:
    assert run(["sh", "-c", "echo out; echo err >&2; exit 3"], 10).returncode == 3
    assert run(["sh", "-c", "echo out"], 10).stdout == "out\n"


def test_a_missing_program_is_127_and_a_slow_one_124() -> None:
    assert run(["no-such-program"], 1).returncode == 127
    assert run(["sleep", "5"], 0.1).returncode == 124


def test_traces_of_an_outer_job_are_removed() -> None:
    outer = {
        "PATH": "/bin",
        "SLURM_CPU_BIND": "x",
        "SLURM_CONF": "/etc/slurm.conf",
        "OMPI_COMM_WORLD_RANK": "3",
        "PMIX_RANK": "3",
        "RANK": "3",
        "MASTER_ADDR": "a",
        "HPCTRAIN_RUN": "/r",
        "HPCTRAIN_SITE": "lab",
        "CUDA_VISIBLE_DEVICES": "0",
    }
    assert set(clean_environment(outer)) == {
        "PATH",
        "SLURM_CONF",
        "HPCTRAIN_SITE",
        "CUDA_VISIBLE_DEVICES",
    }
