"""F32 to F38: MPI, the fabric, and what Slurm is asked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hpc_train.base.errors import PlanError
from hpc_train.runs.run import JobState, SlurmEndpoint
from hpc_train.runs.run_states import job_state
from hpc_train.slurm.job_states import parse_queue, sacct, squeue
from hpc_train.slurm.sbatch import test_only as verdict
from hpc_train.slurm.submitit_script import submit_script
from tests.slurm.fake_slurm import FakeSlurm
from tests.traps.made import BELOW_SRUN, LAUNCHERS, SITE, argv, planned, script

NOT_FINISHED = {
    "SUSPENDED": JobState.SUSPENDED,
    "CONFIGURING": JobState.PENDING,
    "RESIZING": JobState.RUNNING,
    "REQUEUE_HOLD": JobState.PENDING,
    "REQUEUED": JobState.PENDING,
    "SOMETHING_NEW": JobState.UNKNOWN,
}


@pytest.mark.parametrize("launcher", BELOW_SRUN)
def test_f32_the_profile_says_how_ranks_find_each_other(launcher: str) -> None:
    def site(kind: str) -> dict[str, object]:
        return {"launchers": {**dict(SITE["launchers"]), "mpi": kind}}  # type: ignore[call-overload]

    if launcher == "srun":
        assert " --mpi=pmix " in argv(launcher, site=site("pmix"), mpi=True)
        assert "MpiDefault" in "".join(planned(launcher, mpi=True).warnings)
        assert planned(launcher, site=site("pmix"), mpi=True).warnings == ()
        assert planned(launcher, mpi=True, launcher_args=["--mpi=pmi2"]).warnings == ()
    else:
        with pytest.raises(PlanError, match=f"mpi is true, but the launcher {launcher} starts"):
            planned(launcher, site=site("pmix"), mpi=True)
    # torch's ranks do not need PMIx, and its plug-in may fail.
    assert "--mpi" not in argv(launcher, site=site("pmix"))
    assert " --mpi=none " in argv(launcher, site=site("none"))


def test_f33_mpirun_is_told_places_binding_and_names() -> None:
    words = argv("mpirun", env={"A": "a,b"})
    assert words.startswith("mpirun -np 8 --map-by ppr:4:node --bind-to none -x MASTER_ADDR ")
    for name in ("OMP_NUM_THREADS", "A"):
        assert f" -x {name} " in words
    assert not re.search("UCX_TLS|btl|eth0|=tcp", script("mpirun"))


def test_f34_interfaces_come_from_the_profile_alone() -> None:
    for launcher in LAUNCHERS:
        assert "IFNAME" not in script(launcher)
    size = {"nodes": 2, "gpus_per_node": 4, "cpus_per_task": 8}
    for given, value in (("interfaces", "=ib0"), ("exclude_interfaces", "^ib0")):
        network = {"fabric": "infiniband", given: ["ib0"]}
        env = dict(planned(resources=size, site={"network": network}).env)
        assert env["NCCL_SOCKET_IFNAME"] == value


@pytest.mark.parametrize("said", ["job 17", "job 17 on cluster alpha", "job 17; echo Thank you"])
def test_f35_the_id_is_read_without_its_cluster(slurm: FakeSlurm, said: str) -> None:
    slurm.on("sbatch", f"echo Hello; echo Submitted batch {said}; exit")
    assert submit_script(["sbatch", "j"], "") == "17"


def test_f36_sbatch_is_asked_before_it_is_used(slurm: FakeSlurm, tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.write_text(script())
    slurm.on("sbatch", "echo 'sbatch: error: invalid partition specified: x' >&2; exit 1")
    assert verdict(SlurmEndpoint(), path).startswith("refused: invalid partition specified: x (")
    assert slurm.calls("sbatch") == [["--test-only", str(path)]]


def test_f37_answers_are_read_by_fields_that_we_name(slurm: FakeSlurm) -> None:
    squeue(SlurmEndpoint(), ["1"])
    sacct(SlurmEndpoint(), ["1"], "2026-11-21")
    for program in ("squeue", "sacct"):
        (words,) = slurm.calls(program)
        assert any(word.startswith("--format=") for word in words)
        assert not [word for word in words if "json" in word or "yaml" in word]


@pytest.mark.parametrize("word", NOT_FINISHED)
def test_f38_what_goes_on_has_not_finished(word: str) -> None:
    state, _ = job_state(word)
    assert state is NOT_FINISHED[word]
    assert not state.finished


def test_f38_a_job_that_slurm_queues_again_waits() -> None:
    """A lost node or a preemption is the end of a job only if Slurm gives the job up."""
    (entry,) = parse_queue("9\x1fPENDING\x1fN/A\x1f\x1fBeginTime\x1fj\x1f\x1e\n")
    assert not entry.report.state.finished
    assert all(job_state(word)[0].finished for word in ("NODE_FAIL", "PREEMPTED"))
