from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.jobs.override import parse_setting
from hpc_train.scripts.prepare import Request, prepare
from hpc_train.submissions.submit import preview


def said(axes: str, *settings: str) -> list[str]:
    path = Path("study.yaml")
    path.write_text(
        "name: s\njob:\n  command: [python, train.py]\n  launcher: torchrun\n"
        "  resources: {gpus_per_node: 4, cpus_per_task: 8, time: 1h}\n"
        f"axes: {axes}\nrepetitions: 3\nscaling: strong\n"
    )
    overrides = tuple(map(parse_setting, settings))
    return list(preview(prepare(Request(path=path, site="slurm-generic", overrides=overrides))))


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("repetitions", "text"),
    [
        (1, "1 repetition: no interval and no verdict; with more, at 2 % noise (3: ±5 %, "),
        (3, "3 repetitions resolve about ±5 % at 2 % noise (5: ±3 %, 10: ±1.9 %)"),
        (5, "5 repetitions resolve about ±3 % at 2 % noise (10: ±1.9 %, 20: ±1.3 %)"),
        (40, "40 repetitions resolve about ±0.9 % at 2 % noise"),
    ],
)
def test_what_repetitions_resolve(repetitions: int, text: str) -> None:
    (line,) = said("{nodes: [1, 2, 4, 8, 16, 32]}", f"repetitions={repetitions}")
    assert line.startswith(text)
    assert line.endswith(text[-1]) or repetitions == 1
