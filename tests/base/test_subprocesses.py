"""Processes: how they end, and what they do not inherit."""

from hpc_train.base.processes import clean_environment, run


def test_a_process_is_reported_as_it_ended() -> None:
    assert run(["sh", "-c", "echo out; echo err >&2; exit 3"], 10).returncode == 3
    assert run(["sh", "-c", "echo out"], 10).stdout == "out\n"


def test_a_missing_program_is_127_and_a_slow_one_124() -> None:
    assert run(["no-such-program"], 1).returncode == 127
    assert run(["sleep", "600"], 0.1).returncode == 124


def test_both_outputs_are_read_to_the_end() -> None:
    done = run(["sh", "-c", "seq 200000; seq 200000 >&2; printf 'a\\r\\nb\\377'"], 30)
    assert (done.stdout.count("\n"), done.stderr.count("\n")) == (200001, 200000)
    assert done.stdout.endswith("a\nb\ufffd")


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
        "HPCTRAIN_CHECKPOINTS": "/r/checkpoints",
        "HPCTRAIN_STOP_AT_TERM": "1",
        "HPCTRAIN_STOP_FILE": "/r/stop",
        "HPCTRAIN_SITE": "lab",
        "CUDA_VISIBLE_DEVICES": "0",
    }
    assert set(clean_environment(outer)) == {
        "PATH",
        "SLURM_CONF",
        "HPCTRAIN_SITE",
        "CUDA_VISIBLE_DEVICES",
    }


def test_a_job_gets_no_settings_of_a_notebook() -> None:
    of_kernel = {"MPLBACKEND": "module://inline", "FORCE_COLOR": "1", "JPY_SESSION_NAME": "a.ipynb"}
    assert clean_environment({**of_kernel, "JPY_PARENT_PID": "7", "A": "b"}) == {"A": "b"}
    # Outside of a kernel, a person has set them.
    assert clean_environment({"MPLBACKEND": "agg", "FORCE_COLOR": "1"}) == {
        "MPLBACKEND": "agg",
        "FORCE_COLOR": "1",
    }
