"""Which logs the generic parser reads: those of runs in which no other parser measures anything."""

from pathlib import Path

import pytest

from hpc_train.logs.collect import collect
from hpc_train.logs.read_log import ParseStats

EPOCHS = "Epoch 0 took 0.5s, 3800 images/sec\nEpoch 1 took 0.25s, 3900 images/sec\n"


def records(tmp_path: Path, **logs: str) -> list[tuple[str, str, float, str]]:
    for name, text in logs.items():
        (tmp_path / f"{name}.log").write_text(text)
    paths = [tmp_path / f"{name}.log" for name in logs]
    found = list(collect("run", paths))
    return [(one.parser, one.metric, one.value, one.scope) for one in found]


def test_a_log_of_no_known_format_is_read(tmp_path: Path) -> None:
    assert records(tmp_path, a="begin\n" + EPOCHS) == [
        ("generic", "epoch_time", 0.5, "per_rank"),
        ("generic", "samples_per_second", 3800.0, "unknown"),
        ("generic", "epoch_time", 0.25, "per_rank"),
        ("generic", "samples_per_second", 3900.0, "unknown"),
    ]


@pytest.mark.parametrize(
    "known",
    [
        "iter 1: loss 2.0, time 100.0ms, mfu 30%\n",
        '@hpct {"step": 1, "step_time": 0.5}\n',
        "Train Epoch: 1 [640/60000 (1%)]\tLoss: 0.5\n",
    ],
)
def test_a_log_that_another_parser_measures_is_not_guessed(tmp_path: Path, known: str) -> None:
    for text in (known + EPOCHS, EPOCHS + known):
        assert {parser for parser, *_ in records(tmp_path, a=text)}.isdisjoint({"generic"})


def test_no_log_of_a_measured_run_is_guessed(tmp_path: Path) -> None:
    found = records(tmp_path, a=EPOCHS, b="iter 1: loss 2.0, time 100.0ms, mfu 30%\n")
    assert {parser for parser, *_ in found} == {"nanogpt"}


def test_a_bar_of_an_unknown_loop_is_no_format(tmp_path: Path) -> None:
    bar = "Evaluating:  25%|##5       | 25/100 [00:10<00:30,  2.50it/s]\n"
    found = records(tmp_path, a=bar + EPOCHS)
    assert [parser for parser, *_ in found] == ["tqdm", *["generic"] * 4]


@pytest.mark.parametrize(
    ("ranks", "scope"),
    [((1,), "global"), ((2,), "unknown"), ((1, 2), "unknown"), ((2, 1), "unknown")],
)
def test_rate_of_a_single_rank_is_that_of_the_job(
    tmp_path: Path, ranks: tuple[int, ...], scope: str
) -> None:
    sizes = {f"rank{n}": f'@hpct {{"world_size": {size}}}\n' for n, size in enumerate(ranks)}
    found = records(tmp_path, **sizes, z=EPOCHS)
    assert {one[3] for one in found if one[1] == "samples_per_second"} == {scope}


def test_a_loss_that_is_no_number_is_counted_once(tmp_path: Path) -> None:
    log, census = tmp_path / "a.log", ParseStats()
    log.write_text("Epoch [1, loss: nan\n" + EPOCHS)
    found = [one.metric for one in collect("run", [log], census=census)]
    assert found.count("not_finite") == 1
    assert census.known["generic"].lines == 2
