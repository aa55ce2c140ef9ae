r"""Ultralytics and YOLOv5: bars of tqdm and of its own, `\r`, precision."""

from __future__ import annotations

import pytest

from tests.records.parse_text import parse

ROW = "     20/100      2.34G     0.4741     0.5874      1.012          3        640: "
TQDM = f"{ROW}100%|██████████| 1600/1600 [01:36<00:00, 16.53it/s]"
OWN = f"{ROW}100% ━━━━━━━━━━━━ 1600/1600 16.6it/s 1:36"
Found = list[tuple[object, ...]]


def found(text: str) -> Found:
    return [
        (hit.metric, hit.value, hit.scope, hit.step, hit.steps)
        for _, hit, _ in parse(text.encode())
    ]


@pytest.mark.parametrize(
    "line",
    [TQDM, OWN, f"{OWN}<0.1ss", f"\x1b[K{OWN}", TQDM.replace("|██████████|", ""), f"0: {TQDM}"],
)
def test_finished_epoch(line: str) -> None:
    assert found(line) == [
        ("step_time", 0.06, "per_rank", 32000, 1600),
        ("epoch_time", 96.0, "per_rank", 20, 1),
    ]


def test_tenths_of_a_second() -> None:
    line = f"{ROW}100% ━━━━━━━━━━━━ 110/110 10.2it/s 10.8s0.1s"
    assert found(line)[0] == ("step_time", pytest.approx(10.8 / 110), "per_rank", 2200, 110)


@pytest.mark.parametrize(
    "line",
    [
        f"{ROW}100%|██████████| 9/9 [00:02<00:00,  4.11it/s]",
        f"{ROW}100% ━━━━━━━━━━━━ 9/9 11.6it/s 0.8s",
    ],
)
def test_time_that_is_not_precise_is_left_out(line: str) -> None:
    assert not [scope for _, _, scope, _, _ in found(line) if scope != "unknown"]


@pytest.mark.parametrize(
    "line",
    [
        TQDM.replace("1600/1600", "1597/1600"),
        TQDM.replace("100%", " 99%"),
        "    Class     Images  Instances      Box(P    R      mAP50: 100%|##| 34/34 [00:12<00:00]",
        "Epoch 1/100: 100%|##########| 34/34 [00:12<00:00,  2.8it/s]",
        "1/100  tokens: 100%|##########| 34/34 [00:12<00:00,  2.8it/s]",
        TQDM[: TQDM.index("[") + 4],
    ],
)
def test_other_bars_state_nothing(line: str) -> None:
    assert not parse(line.encode(), "ultralytics")


def test_drawings_of_an_epoch_are_one() -> None:
    half = TQDM.replace("100%", " 50%").replace("1600/1600", "800/1600")
    text = f"\r{half}\r{TQDM}\r{TQDM}\n"
    assert len([row for row in found(text) if row[0] == "step_time"]) == 1


def test_epochs_of_yolov5_count_from_0() -> None:
    rows = [ROW.replace("20/100", f"{n}/2") for n in range(3)]
    text = "\n".join(f"{row}100%|##| 40/40 [00:20<00:00,  2.0it/s]" for row in rows)
    assert [row[3] for row in found(text) if row[0] == "step_time"] == [40, 80, 120]


def test_end_of_training_and_another_one() -> None:
    end = "20 epochs completed in 0.553 hours."
    text = f"{TQDM}\n{end}\n{TQDM}\n{end}\n"
    assert [row[:2] for row in found(text)] == 2 * [
        ("step_time", 0.06),
        ("epoch_time", 96.0),
        ("time_to_train", pytest.approx(1990.8)),
    ]
    assert not found("3 epochs completed in 0.009 hours.")
