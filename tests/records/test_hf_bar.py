"""Which progress bar is that of the Trainer's training, and of which step a dictionary is."""

from __future__ import annotations

import pytest

from tests.records.parse_text import brief, parse, values

BANNER = b"***** Running training *****\n  Total optimization steps = 10\n"


def bar(done: int, total: int, clock: str, rate: str = "2.00s/it", name: str = "") -> bytes:
    return f"{name} 50%|#  | {done}/{total} [{clock}<00:18,  {rate}]\n".encode()


def test_bar_within_that_of_the_training_is_an_evaluation() -> None:
    text = bar(1, 10, "00:02") + bar(1, 3, "00:00", "9.00it/s") + bar(2, 10, "00:04", "2.50s/it")
    assert values(BANNER + text, "step_time", "hf_trainer") == [2, 2.5]


def test_ranks_draw_the_bar_of_the_training_a_little_apart() -> None:
    text = bar(5, 10, "00:10") + bar(5, 10, "00:09", "1.80s/it") + bar(6, 10, "00:11", "1.90s/it")
    assert values(BANNER + text, "step_time", "hf_trainer") == [2, 1.8, 1.9]


def test_bar_of_an_evaluation_with_as_many_steps_as_the_training() -> None:
    rows = [bar(8, 10, "00:08"), b"***** Running Evaluation *****\n"]
    rows += [bar(done, 10, f"00:0{done // 2}", "4.00it/s") for done in range(11)]
    rows += [b"{'eval_loss': 2.25, 'eval_runtime': 2.0}\n", bar(9, 10, "00:13")]
    for text in (rows, [rows[0], *rows[2:]]):
        found = parse(BANNER + b"".join(text), "hf_trainer")
        assert [(hit.value, hit.step) for _, hit, _ in found if hit.metric == "step_time"] == [
            (2, 8),
            (2, 9),
        ]


def test_bar_of_an_evaluation_alone_is_none_of_training() -> None:
    text = (
        b"[INFO|trainer.py:2463] 2024-05-01 10:00:00,323 >> ***** Running Evaluation *****\n"
        b"100%|#| 125/125 [04:06<00:00,  1.99s/it]\n"
    )
    assert brief(text) == [("iteration_time", 1.99, "unknown", 125, None)]


@pytest.mark.parametrize(
    "text",
    [
        bar(50, 100, "01:00"),
        bar(50, 100, "01:00", name="Training:"),
        bar(50, 100, "01:00", "2000.00it/s"),
        bar(500, 1000, "00:01", "6044288.00it/s"),
        bar(99, 100, "01:00") + b"{'eval_loss': 2.0, 'eval_runtime': 60.0, 'epoch': 1.0}\n",
        bar(100, 100, "01:00") + b"{'loss': 2.0, 'learning_rate': 1e-5, 'epoch': 1.0}\n",
        bar(50, 100, "01:00", name="Map:") + b"{'loss': 2.0, 'epoch': 1.0}\n",
        b"***** Running training *****\n" + bar(50, 100, "01:00"),
        BANNER + bar(5, 11, "01:00"),
        BANNER + bar(50, 100, "01:00") + b"{'loss': 2.0, 'epoch': 1.0}\n" + bar(51, 100, "01:01"),
    ],
)
def test_bar_without_evidence_is_of_an_unknown_loop(text: bytes) -> None:
    found = parse(text)
    assert not [hit for _, hit, _ in found if hit.metric == "step_time"]
    assert {hit.scope for _, hit, _ in found if hit.metric == "iteration_time"} == {"unknown"}


def test_dictionary_while_a_bar_is_under_way_says_that_it_is_the_trainings() -> None:
    text = (
        bar(9, 20, "00:09") + bar(10, 20, "00:10", "1.00s/it") + b"{'loss': 2.5, 'epoch': 0.5}\n"
        + bar(11, 20, "00:11", "1.10s/it") + bar(3, 7, "00:01") + bar(20, 20, "00:20", "1.20s/it")
    )  # fmt: skip
    found = [
        (hit.metric, hit.value, hit.step, hit.steps) for _, hit, _ in parse(text, "hf_trainer")
    ]
    assert found == [("loss", 2.5, 10, 10), ("step_time", 1.1, 11, 1), ("step_time", 1.2, 20, 9)]


@pytest.mark.parametrize(("rate", "count"), [(1.667, 1), (1.9, 0)])
def test_rate_of_the_whole_training_says_how_many_steps_there_were(rate: float, count: int) -> None:
    end = f"{{'train_runtime': 30.0, 'train_steps_per_second': {rate}, 'train_loss': 2.2}}\n"
    found = parse(bar(50, 50, "00:30", "1.66it/s") + end.encode(), "hf_trainer")
    means = [hit for _, hit, _ in found if hit.variant == "mean"]
    assert [(hit.value, hit.steps) for hit in means] == [(0.6, 50)] * count


def test_second_training_in_one_log_has_steps_of_its_own() -> None:
    text = BANNER + bar(9, 10, "09:00") + BANNER.replace(b"10", b"30") + bar(1, 30, "00:02")
    found = parse(text, "hf_trainer")
    assert [(hit.step, hit.steps) for _, hit, _ in found if hit.metric == "step_time"] == [
        (9, 9),
        (1, 1),
    ]


def test_dictionaries_that_come_late_have_no_step() -> None:
    def logged(loss: float, epoch: float) -> bytes:
        return f"{{'loss': {loss}, 'grad_norm': 1.0, 'epoch': '{epoch}'}}\n".encode()

    def losses(*parts: bytes) -> list[tuple[float, int | None]]:
        head = BANNER.replace(b"10", b"613")
        found = parse(head + b"".join(parts), "hf_trainer")
        return [(hit.value, hit.step) for _, hit, _ in found if hit.metric == "loss"]

    bars = [bar(step, 613, f"{step // 60}:{step % 60:02}") for step in (570, 580, 590, 600)]
    late = losses(
        *(bars[0], logged(0.37, 0.9135), bars[1], logged(0.36, 0.93)),
        *(bars[2], logged(0.35, 0.9464), bars[3], logged(0.34, 0.9627)),
    )
    assert late == [(0.37, 570), (0.36, None), (0.35, None), (0.34, None)]
    in_time = losses(
        *(bars[0], logged(0.37, 0.93), bars[1], logged(0.36, 0.9464)),
        *(bars[2], logged(0.35, 0.9627), bars[3], logged(0.34, 0.979)),
    )
    assert in_time == [(0.37, 570), (0.36, 580), (0.35, 590), (0.34, 600)]
    at_once = losses(bars[0], logged(0.37, 0.93), logged(0.36, 0.9464), logged(0.35, 0.9627))
    assert at_once == [(0.37, 570), (0.36, None), (0.35, None)]
