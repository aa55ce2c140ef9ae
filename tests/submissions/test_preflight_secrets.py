"""A secret reaches the ranks, and no file of the run folder."""

import os
from pathlib import Path

import pytest

from hpc_train.base.errors import SpecError
from hpc_train.jobs.override import Override
from hpc_train.runs.run import JobState
from hpc_train.scripts.prepare import Prepared, Request, prepare
from hpc_train.submissions.submit import check_secrets, submit
from tests.submissions.waiting import finished

VALUE = "hf_9d3b-very-secret"
SCRIPT = "import os; open('seen', 'w').write(os.environ['HF_TOKEN']); print(len(os.environ))"


@pytest.fixture(autouse=True)
def secret(desk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the secret into the shell and into a file."""
    monkeypatch.setenv("HF_TOKEN", VALUE)
    path = desk / "token"
    path.write_text(f"{VALUE}\n")
    path.chmod(0o600)
    return path


def job(where: str, launcher: str = "single", setup: str = "") -> Prepared:
    path = Path("job.yaml")
    path.write_text(
        f'command: [python, -c, "{SCRIPT}"]\nlauncher: {launcher}\n'
        f"resources: {{cpus_per_task: 1}}\nsecrets: {{HF_TOKEN: {where}}}\nsetup: [{setup}]\n"
    )
    return prepare(Request(path=path, site="local"))


@pytest.mark.process
@pytest.mark.parametrize(
    ("where", "launcher"),
    [
        ("env", "single"),
        ("./token", "single"),
        pytest.param("env", "mpirun", marks=pytest.mark.mpi),
        pytest.param("./token", "mpirun", marks=pytest.mark.mpi),
        ("./token", "spawn"),
    ],
)
def test_the_ranks_have_it_and_no_file_holds_it(where: str, launcher: str) -> None:
    done = submit(job(where, launcher, "set -x"), Path("results"), ["hpctrain"])
    (run,) = finished(done.home).values()
    assert run.state is JobState.COMPLETED, run.problem
    assert Path("seen").read_text() == VALUE
    files = [path for path in Path("results").rglob("*") if path.is_file()]
    assert len(files) > 4
    assert [path for path in files if VALUE.encode() in path.read_bytes()] == []


def test_a_secret_of_the_shell_has_to_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = job("env")
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(SpecError, match=r"job\.yaml:4: HF_TOKEN is not set in this shell"):
        check_secrets(prepared)


def test_what_is_no_file_is_refused(desk: Path) -> None:
    with pytest.raises(SpecError, match=r"job\.yaml:4: secrets\.HF_TOKEN: .*No such file"):
        check_secrets(job("./tokn"))
    os.mkfifo(desk / "pipe", 0o600)
    with pytest.raises(SpecError, match="is not a regular file"):
        check_secrets(job("./pipe"))


def test_a_file_that_others_may_read_is_refused(secret: Path) -> None:
    secret.chmod(0o640)
    with pytest.raises(SpecError, match=r"token has mode 640, not 600") as failure:
        check_secrets(job("./token"))
    assert failure.value.hint == f"chmod 600 {secret}"


@pytest.mark.parametrize("value", [VALUE, "it's-a-long'secret1", "two\nlines of it"])
def test_a_value_in_any_text_of_a_job_is_refused(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """A shell has expanded it before; quoted for the script, it looks different there."""
    monkeypatch.setenv("HF_TOKEN", value)
    Path("train.py").write_text("")
    words = Request(path=Path("train.py"), site="local", arguments=(f"--x={value}",))
    with pytest.raises(
        SpecError, match="the script would contain the value of HF_TOKEN"
    ) as failure:
        prepare(words)
    assert value not in failure.value.message + failure.value.hint
    comment = Override(key="comment", value=value.replace("\n", " "), origin="--set comment")
    if "\n" not in value:
        with pytest.raises(SpecError, match="would contain the value of HF_TOKEN"):
            prepare(Request(path=Path("train.py"), site="local", overrides=(comment,)))


@pytest.mark.parametrize(("value", "refused"), [("tuesday8", True), ("tuesday", False)])
def test_a_variable_that_the_job_calls_a_secret_is_one(
    monkeypatch: pytest.MonkeyPatch, value: str, *, refused: bool
) -> None:
    """Neither its name nor its value looks like one; shorter values occur in many scripts."""
    monkeypatch.setenv("PASSAGE", value)
    path = Path("job.yaml")
    path.write_text(
        f"command: [python, train.py, {value}]\nlauncher: single\n"
        "resources: {cpus_per_task: 1}\nsecrets: {PASSAGE: env}\n"
    )
    if refused:
        with pytest.raises(SpecError, match="would contain the value of PASSAGE"):
            prepare(Request(path=path, site="local"))
    else:
        prepare(Request(path=path, site="local"))


@pytest.mark.process
@pytest.mark.parametrize(("where", "mode"), [("env", 600), ("./token", 644), ("./token", 640)])
def test_a_secret_that_is_gone_when_the_job_starts_ends_it(
    secret: Path, where: str, mode: int
) -> None:
    """The queue may be long, and a shell may be closed."""
    setup = f"unset HF_TOKEN; chmod {mode} {secret}"
    done = submit(job(where, setup=setup), Path("results"), [])
    (run,) = finished(done.home).values()
    assert run.state is JobState.FAILED
    said = (run.folder.logs / "job.out").read_text()
    assert (
        "HF_TOKEN is not set in the job" in said or "other users can read it; run chmod 600" in said
    )
    assert VALUE not in said
    assert os.environ["HF_TOKEN"] == VALUE
