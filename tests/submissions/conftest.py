"""A folder to submit from, with a lock of its own, and small programs."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hpc_train.jobs.override import parse_setting
from hpc_train.runs.run_states import cancel, runs_below
from hpc_train.scripts.prepare import Prepared, Request, prepare
from tests.slurm.fake_slurm import FakeSlurm, programs

Prepare = Callable[..., Prepared]
# Fixtures of tests that submit.
_STARTING = {"slurm", "pbs", "account"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what asks the programs of a cluster in small."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and _STARTING & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.process)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Everything that was started here is ended here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    yield tmp_path
    for home in (tmp_path / "results").glob("*"):
        if any(not run.state.finished for run in runs_below(home)):
            cancel(home)


@pytest.fixture
def job(desk: Path) -> Prepare:
    """Prepare a single-process job of Python code."""

    def make(code: str, *settings: str) -> Prepared:
        path = desk / "job.yaml"
        path.write_text(
            f"name: j\ncommand: [{sys.executable}, -c, {code!r}]\nlauncher: single\n"
            "resources: {cpus_per_task: 1}\n"
        )
        return prepare(Request(path=path, overrides=tuple(map(parse_setting, settings))))

    return make


@pytest.fixture
def study(desk: Path) -> Prepare:
    """Prepare a study over the variable X of Python code."""

    def make(code: str, *settings: str) -> Prepared:
        path = desk / "study.yaml"
        path.write_text(
            f"name: s\njob:\n  command: [{sys.executable}, -c, {code!r}]\n  launcher: single\n"
            "  resources: {cpus_per_task: 1}\n"
            "axes: {env.X: [1, 2]}\nrepetitions: 2\nscaling: strong\n"
        )
        return prepare(Request(path=path, overrides=tuple(map(parse_setting, settings))))

    return make


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    """An empty folder to submit from, on a cluster whose jobs never run."""
    desk = tmp_path / "desk"
    desk.mkdir()
    monkeypatch.chdir(desk)
    make = programs(tmp_path / "bin", monkeypatch)
    return FakeSlurm(tmp_path / "slurm", make, monkeypatch)
