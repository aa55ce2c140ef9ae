"""Node lists of Slurm as names, and the nodes of a run."""

import subprocess
from pathlib import Path

import msgspec
import pytest

from hpc_train.base.node_names import node_names
from hpc_train.runs.conditions import provenance
from hpc_train.runs.expected_runs import run_blocks
from hpc_train.runs.nodes import nodes_of
from hpc_train.runs.run import JobState, JobStatus, Run, RunFolder, Submission
from hpc_train.runs.run_states import runs_below

STUDY = Path(__file__).parents[2] / "results/studies/digits-two-cores"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("lab1", ("lab1",)),
        ("lab1,lab2", ("lab1", "lab2")),
        ("n[08-10,12],gpu-7", ("n08", "n09", "n10", "n12", "gpu-7")),
        ("r[1-2]c[3,5]", ("r1c3", "r1c5", "r2c3", "r2c5")),
        ("a[1-2]-ib.site.org", ("a1-ib.site.org", "a2-ib.site.org")),
        ("n1,n1", ("n1",)),
        *((text, ()) for text in ("", "n[1-", "n[2-1]", "n[a-b]", "n1 n2", "n[1,,2]", "n1,")),
        ("n[0-999999999]", ()),
        ("n[0-999][0-999]", ()),
    ],
)
def test_a_node_list_is_names(text: str, names: tuple[str, ...]) -> None:
    assert node_names(text) == names


def test_the_nodes_of_a_run_are_known_if_their_number_is_that_of_the_run() -> None:
    run = runs_below(STUDY)[0]
    assert run.status is not None
    for text, names in (("lab7", ("lab7",)), ("lab1,lab2", ()), ("lab[1-4]", ())):
        status = msgspec.structs.replace(run.status, nodes=text)
        assert nodes_of(msgspec.structs.replace(run, status=status)) == names
    assert nodes_of(msgspec.structs.replace(run, manifest=None)) == ()
    assert nodes_of(None) == ()


def nested_run(run_id: str, started: float | None, job: str) -> Run:
    """Return a run in the shared allocation `job`."""
    return Run(
        folder=RunFolder(path=Path(run_id)),
        manifest=None,
        submission=Submission(
            executor="slurm", native_id=job, submitted="2026-11-21T03:00:00Z", shared=True
        ),
        status=None if started is None else JobStatus(started=started),
        state=JobState.COMPLETED,
    )


def blocks(*order: tuple[str, int, float | None]) -> dict[str, str]:
    """Return the blocks of runs of allocation 7, given as (run id, repetition, start)."""
    return run_blocks(
        (nested_run(name, start, "7"), repetition) for name, repetition, start in order
    )


def test_a_repetition_after_the_other_are_two_blocks() -> None:
    found = blocks(("4-r2", 2, 30.0), ("1-r1", 1, 10.0), ("4-r1", 1, 20.0), ("1-r2", 2, 40.0))
    assert found == {"1-r1": "7/1", "4-r1": "7/1", "4-r2": "7/2", "1-r2": "7/2"}


def test_overlapping_repetitions_are_no_blocks() -> None:
    assert blocks(("1-r1", 1, 10.0), ("1-r2", 2, 20.0), ("4-r1", 1, 30.0), ("4-r2", 2, 40.0)) == {}


def test_an_unknown_start_leaves_no_block_in_its_allocation() -> None:
    other = (nested_run("1-r3", 50.0, "8"), 3)
    own = ((nested_run("1-r1", 10.0, "7"), 1), (nested_run("4-r1", None, "7"), 1))
    assert run_blocks((*own, other)) == {"1-r3": "8/3"}


def test_a_job_of_its_own_has_no_block() -> None:
    run = nested_run("1-r1", 10.0, "7")
    assert run.submission is not None
    alone = msgspec.structs.replace(
        run, submission=msgspec.structs.replace(run.submission, shared=False)
    )
    unknown = msgspec.structs.replace(
        run, submission=msgspec.structs.replace(run.submission, native_id="")
    )
    assert run_blocks(((alone, 1), (unknown, 1))) == {}


def test_the_results_of_a_run_are_no_change_of_the_code(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("pass\n")
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "run.json").write_text("{}\n")
    assert provenance(tmp_path, [])["git"]["dirty"] is False
    (tmp_path / "train.py").write_text("print()\n")
    assert provenance(tmp_path, [])["git"]["dirty"] is True
