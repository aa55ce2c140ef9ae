"""Python functions through submitit's plug-in: our script, submitit's pickles and results."""

import re
from pathlib import Path
from typing import Any

import pytest
import submitit
from submitit.core import utils

from hpc_train.base.errors import SpecError
from hpc_train.submissions.submitit_plugin import FunctionJob
from tests.slurm.fake_slurm import FakeSlurm, option


@pytest.fixture
def executor(slurm: FakeSlurm, tmp_path: Path) -> submitit.AutoExecutor:
    return submitit.AutoExecutor(tmp_path / "f", cluster="hpctrain")


def settled(executor: submitit.AutoExecutor, **more: Any) -> submitit.AutoExecutor:
    executor.update_parameters(hpctrain_site="slurm-generic", hpctrain_launcher="srun", **more)
    return executor


def script_of(job: submitit.Job[Any]) -> str:
    return (job.paths.folder / str(job.job_id) / "job.sbatch").read_text()


def directives(job: submitit.Job[Any]) -> dict[str, str]:
    found = re.findall(r"^#SBATCH --([a-z-]+)(?:=(.*))?$", script_of(job), re.MULTILINE)
    return dict(found)


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*")) if folder.exists() else []


def test_submitits_words_become_the_job(executor: submitit.AutoExecutor) -> None:
    words = {"timeout_min": 90, "mem_gb": 2.5, "nodes": 2, "tasks_per_node": 4}
    counts = {"cpus_per_task": 3, "gpus_per_node": 4, "name": "fit", "stderr_to_stdout": True}
    ours = {"hpctrain_account": "abc", "hpctrain_partition": "p", "hpctrain_exclusive": True}
    job = settled(executor, **words, **counts, **ours).submit(print, "hello")
    found = directives(job)
    assert {key: found[key] for key in ("job-name", "nodes", "ntasks-per-node", "account")} == {
        "job-name": "fit",
        "nodes": "2",
        "ntasks-per-node": "4",
        "account": "abc",
    }
    assert (found["cpus-per-task"], found["gpus-per-node"], found["partition"]) == ("3", "4", "p")
    assert (found["time"], found["mem"], found["exclusive"]) == ("01:30:00", "2560M", "")
    assert job.num_tasks == 8


def test_sbatch_gets_our_script_and_the_run_folder(
    executor: submitit.AutoExecutor, slurm: FakeSlurm, tmp_path: Path
) -> None:
    job = settled(executor).submit(print, "hello")
    (argv,) = slurm.calls("sbatch")
    run = tmp_path / "f" / "1001"
    assert isinstance(job, FunctionJob)
    assert job.job_id == "1001"
    assert run.is_symlink()
    assert argv == [
        f"--output={run.resolve()}/logs/job.out",
        "--comment=hpctrain",
        f"{run.resolve()}/job.sbatch",
        str(run.resolve()),
    ]
    assert "submitit.core._submit" in script_of(job)
    assert f"{tmp_path}/f" in script_of(job)
    assert re.search("^export SUBMITIT_EXECUTOR=.?hpctrain", script_of(job), re.MULTILINE)


def test_pickles_and_logs_are_found_by_the_job_id(
    executor: submitit.AutoExecutor, tmp_path: Path
) -> None:
    job = settled(executor, tasks_per_node=2).submit(divmod, 7, 2)
    assert job.paths.submitted_pickle.exists()
    assert utils.DelayedSubmission.load(job.paths.submitted_pickle).result() == (3, 1)
    logs = tmp_path / "f" / "1001" / "logs"
    assert job.task(1).paths.stdout == logs / "rank-1.out"
    assert job.paths.stderr == logs / "job.out"
    for rank in (0, 1):
        utils.cloudpickle_dump(("success", rank * 10), job.task(rank).paths.result_pickle)
    assert job.results() == [0, 10]


def test_an_array_is_one_job_for_each(executor: submitit.AutoExecutor, slurm: FakeSlurm) -> None:
    jobs = settled(executor).map_array(abs, [-1, -2, -3])
    assert [job.job_id for job in jobs] == ["1001", "1002", "1003"]
    assert [option(argv, "array") for argv in slurm.calls("sbatch")] == [None] * 3
    assert len({argv[-1] for argv in slurm.calls("sbatch")}) == 3
    calls = [utils.DelayedSubmission.load(job.paths.submitted_pickle).result() for job in jobs]
    assert calls == [1, 2, 3]


@pytest.mark.parametrize(
    ("parameters", "error", "part"),
    [
        ({"hpctrain_lancher": "srun"}, NameError, "Unknown argument 'lancher'"),
        ({"hpctrain_command": ["x"]}, NameError, "Unknown argument 'command'"),
        ({"nodes": 0}, SpecError, r"update_parameters: resources\.nodes: must be a whole number"),
        ({"hpctrain_env": {"A_TOKEN": "hush-hush"}}, SpecError, r"env\.A_TOKEN looks like a"),
    ],
)
def test_wrong_parameters_are_refused_at_once(
    executor: submitit.AutoExecutor,
    tmp_path: Path,
    parameters: dict[str, Any],
    error: type[Exception],
    part: str,
) -> None:
    with pytest.raises(error, match=part):
        executor.update_parameters(**parameters)
    assert executor._executor.parameters == {}, "what was refused is not kept"
    assert left(tmp_path / "f") == []


def test_an_outer_job_leaves_no_trace(
    executor: submitit.AutoExecutor, slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLURM_JOB_ID", "PMIX_RANK", "SBATCH_JOB_NAME", "SBATCH_NO_REQUEUE"):
        monkeypatch.setenv(name, "1")
    settled(executor).submit(print)
    found = slurm.environment()
    assert not {"SLURM_JOB_ID", "PMIX_RANK", "SBATCH_JOB_NAME"} & found.keys()
    assert found["SBATCH_NO_REQUEUE"] == "1"


def test_a_launcher_without_ranks_is_refused(
    executor: submitit.AutoExecutor, tmp_path: Path
) -> None:
    executor.update_parameters(hpctrain_site="slurm-generic", hpctrain_launcher="spawn")
    with pytest.raises(SpecError, match="launcher spawn starts one process per node"):
        executor.submit(print)
    assert left(tmp_path / "f") == []
