"""Which lines say that the work is done, and which only look like it."""

from __future__ import annotations

import pytest

from hpc_train.records.diagnosis.endings import EndingReader
from hpc_train.records.line import Line

MLLOG = '0: :::MLLOG {"time_ms": 5, "key": "%s", "value": null, "metadata": {"status": "%s"}}'


def kinds(text: str) -> list[str]:
    reader = EndingReader()
    line = Line(text.encode(), 7)
    assert not text or any(literal in line.raw for literal in reader.literals)
    return [ending.kind for ending in reader.read(line)]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("success", MLLOG % ("run_stop", "success")),
        ("failure", MLLOG % ("run_stop", "aborted")),
        ("restart", MLLOG % ("run_start", "")),
        ("success", ':::MLPv0.6.0 ncf 1560.5 (a.py:3) run_stop: {"success": true}'),
        ("success", "[rank0]:[titan] 2026-05-19 19:31:50,420 - root - INFO - Training completed"),
        ("success", "Training completed. Do not forget to share your model"),
        ("success", "[after training is done] datetime: 2024-01-01 10:00:00"),
        (
            "success",
            "2020-12-10 12:38:53 | INFO | fairseq_cli.train | done training in 62.1 seconds",
        ),
        ("success", '@hpct {"v":1,"event":"end","rank":0,"accuracy":0.9}'),
        (
            "success",
            "[2024-01-01 10:00:00,1] [INFO] [launch.py:348:main] Process 41 exits successfully.",
        ),
        ("work", "{'train_runtime': 91.0, 'train_samples_per_second': 1.0, 'epoch': 1.0}"),
        ("work", "`Trainer.fit` stopped: `max_epochs=3` reached."),
        ("bench", "# Avg bus bandwidth    : 38.25"),
        ("bench", "# Collective test concluded: all_reduce_perf"),
        ("failure", "# Out of bounds values : 2 FAILED"),
        ("work", "Total img/sec on 8 GPU(s): 1428.2 +-25.0"),
        ("work", "Training time 1:02:03"),
        ("work", "0: 2018-10-04 17:37:08,539 INFO All done!"),
        ("work", " iteration      500/     500 | consumed samples: 4000 |"),
        ("work", "[step=740/740,epoch=1]"),
    ],
)
def test_line_says_how_it_ended(kind: str, text: str) -> None:
    assert kinds(text) == [kind]


@pytest.mark.parametrize(
    "text",
    [
        f"+ echo '{MLLOG % ('run_stop', 'success')}'",
        " iteration       50/     500 | consumed samples: 4000 |",
        "# Out of bounds values : 0 OK",
        '@hpct {"event":"step","step":3} @hpct {"x":1}',
        '"""Training completed""" is what it prints',
        "# Avg bus bandwidth    : ",
        MLLOG % ("eval_stop", "success"),
        " iteration 5",
    ],
)
def test_line_that_says_nothing_of_the_end(text: str) -> None:
    assert not list(EndingReader().read(Line(text.encode())))


def test_count_of_an_epoch_is_taken_back() -> None:
    reader = EndingReader()
    lines = (b"iteration: 10 / 10", b"iteration: 1 / 10", b"iteration: 2 / 10")
    assert [e.kind for raw in lines for e in reader.read(Line(raw))] == ["work", "restart"]
