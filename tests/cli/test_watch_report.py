"""`hpctrain report --watch`: fresh while the study runs, at rest afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hpc_train.pipeline.report import DEFAULT
from hpc_train.pipeline.report_inputs import selection
from hpc_train.pipeline.run_states import runs_below
from hpc_train.pipeline.watch_report import ReportWatch
from tests.pipeline.waiting import finished, wait_for

Hpctrain = Callable[..., subprocess.CompletedProcess[str]]
# Each step waits for a file of its name, so that the test decides what the study has done.
TRAIN = """\
import os, time
for step in range(6):
    while not os.path.exists("/".join((os.environ["DESK"], f"go{step // 3}"))): time.sleep(0.02)
    print('@hpct {"step": %d, "samples_per_second": 100}' % step, flush=True)
"""
STUDY = """\
name: mine
job:
  command: [python3, train.py]
  launcher: single
  resources: {nodes: 1, tasks_per_node: 1, cpus_per_task: 1}
axes: {tasks_per_node: [1]}
repetitions: 1
warmup: {steps: 1}
scaling: strong
"""
RELOAD = '<meta http-equiv="refresh" content="2">'


@pytest.fixture
def desk(hpctrain: Hpctrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a study that has been submitted, and waits for `go0` and `go1`."""
    monkeypatch.setenv("DESK", str(tmp_path))
    Path("train.py").write_text(TRAIN)
    Path("study.yaml").write_text(STUDY)
    done = hpctrain("submit", "study.yaml", DESK=str(tmp_path))
    assert done.returncode == 0, done.stderr
    return tmp_path


@contextmanager
def watching(*words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "hpc_train", "report", "mine", "--watch", "2", *words],
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until(process: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    while not condition():
        assert process.poll() is None


def page() -> str:
    return Path("page.html").read_text() if Path("page.html").exists() else ""


@pytest.mark.process
def test_the_page_follows_the_study_and_ends_with_it(desk: Path) -> None:
    with watching("-o", "page.html") as process:
        wait_until(process, lambda: RELOAD in page())
        assert "PARTIAL" in page()
        (desk / "go0").touch()
        (desk / "go1").touch()
        out, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    assert 'http-equiv="refresh"' not in page()
    assert "PARTIAL" not in page()
    assert out.splitlines()[-1] == "page.html"
    assert any(line.startswith("COMPLETED  1-") for line in out.splitlines())


@pytest.mark.process
def test_ctrl_c_leaves_the_last_page_at_rest(desk: Path) -> None:
    with watching("-o", "page.html") as process:
        wait_until(process, lambda: RELOAD in page())
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=240)
    assert process.returncode == 130
    assert "the runs continue" in errors
    assert out.splitlines()[-1] == "page.html"
    assert "PARTIAL" in page()
    assert 'http-equiv="refresh"' not in page()
    (desk / "go0").touch()
    (desk / "go1").touch()
    finished(desk / "results" / "mine")


@pytest.mark.process
def test_without_a_file_the_last_report_is_printed(desk: Path) -> None:
    with watching() as process:
        assert process.stderr is not None
        while not process.stderr.readline().startswith("RUNNING"):
            assert process.poll() is None
        (desk / "go0").touch()
        (desk / "go1").touch()
        out, _ = process.communicate(timeout=240)
    assert process.returncode == 0
    assert out.startswith("mine")
    assert "partial" not in out


@pytest.mark.process
def test_the_report_is_made_again_only_after_a_change(desk: Path) -> None:
    search = selection(desk / "results")
    watch = ReportWatch(["mine"], search, DEFAULT, 5.0)
    home = desk / "results" / "mine"
    (desk / "go0").touch()
    wait_for(lambda: b'"step": 2' in b"".join(path.read_bytes() for path in home.glob("*/logs/*")))
    runs = runs_below(home)
    first = watch.changed(runs)
    assert first is not None
    assert first.report.reload_s == 5
    assert watch.changed(runs) is None
    (desk / "go1").touch()
    runs = tuple(finished(home).values())
    last = watch.changed(runs)
    assert last is not None
    assert last.report.reload_s is None
    assert not last.report.partial


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("a", "b", "--watch"), "--watch follows one study, job or run"),
        (("none", "--watch"), "unknown run or study 'none'"),
        (("none", "--watch", "0.1"), "--watch 0.1: at least 2 seconds"),
        (("none", "--watch", "nan"), "--watch nan: at least 2 seconds"),
    ],
)
def test_what_cannot_be_watched_is_refused(
    hpctrain: Hpctrain, words: tuple[str, ...], message: str
) -> None:
    done = hpctrain("report", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
