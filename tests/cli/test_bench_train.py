"""`hpctrain bench train`: its time, and what has not ended by then."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from msgspec.structs import replace

from hpc_train.base.data_folders import strategies_study
from hpc_train.cli.bench import run_study, train
from hpc_train.cli.group import cli
from hpc_train.runs.run import JobState
from hpc_train.runs.run_states import runs_below
from hpc_train.scripts.prepare import prepare, request_of
from hpc_train.sites.load import Machine
from hpc_train.submissions.bench import train_overrides
from tests.cli.conftest import Hpctrain


@pytest.mark.parametrize("minutes", ["0", "nan", "1e9", "soon"])
def test_a_time_that_is_none_is_refused(hpctrain: Hpctrain, minutes: str) -> None:
    done = hpctrain("bench", "train", "--minutes", minutes)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "Invalid value for '--minutes'" in done.stderr


@pytest.mark.process
def test_what_has_not_ended_in_time_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    results = tmp_path / "results"
    own = train_overrides(results, ("single", "ddp"), 10, Machine(cpus=2, gpus=0))
    request = request_of(strategies_study(), (), "local", {}, ('setup=["sleep 900"]',))
    prepared = prepare(replace(request, overrides=(*own, *request.overrides), starts=True))
    # Click keeps the options of help that `report` was asked for first.
    root = click.Context(cli, **cli.context_settings)
    with click.Context(train, parent=root), pytest.raises(SystemExit) as ended:
        run_study(prepared, results, seconds=1.0)
    runs = runs_below(results / "bench-train")
    assert len(runs) == 3
    assert {run.state for run in runs} == {JobState.CANCELLED}
    assert ended.value.code != 0
    shown = capsys.readouterr()
    assert "the time is over; cancelled: 3" in shown.err
    assert "cancelled as its time was over" in shown.out
    assert "by the user" not in shown.out + shown.err
