r"""Keras fit: ends of epochs, drawings before them, `\b` and `\r`, samples, verbose=2."""

from __future__ import annotations

import pytest

from tests.records.parse_text import parse

BAR = "[==============================]"
Found = list[tuple[object, ...]]


def found(text: str) -> Found:
    return [
        (hit.metric, hit.value, hit.step, hit.steps, hit.variant)
        for _, hit, _ in parse(text.encode())
    ]


def times(text: str) -> Found:
    return [
        (name, value, variant)
        for name, value, _, _, variant in found(text)
        if name in ("step_time", "samples_per_second")
    ]


def test_end_of_an_epoch() -> None:
    text = f"""\
Epoch 3/30
  1/195 [..............................] - ETA: 11:02 - loss: 2.5000 - accuracy: 0.1000
194/195 [============================>.] - ETA: 0s - loss: 2.2800 - accuracy: 0.3000
195/195 {BAR} - ETA: 0s - loss: 2.2839 - accuracy: 0.3001
195/195 {BAR} - 157s 802ms/step - loss: 2.2839 - accuracy: 0.3001
333/333 [==============================] - 5s 15ms/step - loss: 0.1616 - accuracy: 0.9535
"""
    assert found(text) == [
        ("epoch_time", 157.0, 3, 1, ""),
        ("step_time", 0.802, 585, 195, ""),
        ("loss", 2.2839, 3, 1, ""),
        ("accuracy", 0.3001, 3, 1, "training"),
    ]


def test_validation_is_in_the_time() -> None:
    text = (
        f"Epoch 1/20\n590/590 {BAR} - 15s 26ms/step - loss: 0.3556 - accuracy: 0.8882"
        " - val_loss: 0.0583 - val_accuracy: 0.9817\n"
    )
    assert found(text) == [
        ("epoch_time", 15.0, 1, 1, ""),
        ("step_time", 0.026, 590, 590, "with_validation"),
        ("loss", 0.3556, 1, 1, ""),
        ("accuracy", 0.8882, 1, 1, "training"),
        ("loss", 0.0583, 1, 1, "validation"),
        ("accuracy", 0.9817, 1, 1, ""),
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"500/500 {BAR} - 10s 20ms/step - loss: 0.2497", ("step_time", 0.02, "")),
        (f"500/500 {BAR} - 5s 9ms/step - loss: 0.2497", ("step_time", 0.009, "rounded")),
        (f"500/500 {BAR} - 0s 410us/step - loss: 0.2497", ("step_time", 0.00041, "")),
        (f"9/9 {BAR} - 105s 12s/step - loss: 0.2497", ("step_time", 12.0, "")),
        (f"500/500 {BAR} - 0s 40us/sample - loss: 0.2497", ("samples_per_second", 25e3, "")),
        ("33/33 - 2842s - loss: 5.1000 - 2842s/epoch - 86s/step", ("step_time", 86.0, "")),
        ("469/469 - 5s - 11ms/step - accuracy: 0.9100 - loss: 0.3000", ("step_time", 0.011, "")),
        (
            "469/469 ━━━━━━━━━━━━━━━━━━━━ 5s 11ms/step - accuracy: 0.9100 - loss: 0.3000",
            ("step_time", 0.011, ""),
        ),
        (
            "\x1b[1m469/469\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m\x1b[37m\x1b[0m "
            "\x1b[1m5s\x1b[0m 11ms/step - accuracy: 0.9100 - loss: 0.3000",
            ("step_time", 0.011, ""),
        ),
    ],
)
def test_time_of_a_step(line: str, expected: tuple[str, float, str]) -> None:
    name, value, variant = expected
    assert times(f"Epoch 1/2\n{line}\n") == [(name, pytest.approx(value), variant)]


def test_steps_of_old_versions_are_samples() -> None:
    text = (
        "Train on 60000 samples, validate on 10000 samples\nEpoch 1/2\n"
        f"60000/60000 {BAR} - 3s 50us/step - loss: 0.2912 - acc: 0.9112\n"
    )
    assert times(text) == [("samples_per_second", 20e3, "")]


def test_no_time_of_a_step_at_all() -> None:
    assert found("Epoch 2/2\n - 12s - loss: 0.2900 - acc: 0.9100\n") == [
        ("epoch_time", 12.0, 2, 1, ""),
        ("loss", 0.29, 2, 1, ""),
        ("accuracy", 0.91, 2, 1, "training"),
    ]


def drawing(bar: str, time: str, loss: float) -> str:
    line = f"\x1b[32m━━━━━━━━━━\x1b[0m \x1b[1m{time}\x1b[0m 40ms/step - loss: {loss:.4f}"
    return f"\x1b[1m{bar}\x1b[0m {line}"


@pytest.mark.parametrize("erased", ["\b" * 60, "\b" * 500])
def test_bar_of_a_terminal(erased: str) -> None:
    states = [
        drawing("  9/10", "0s", 0.5),
        drawing("10/10", "0s", 0.4),
        drawing("10/10", "0s", 0.3),
    ]
    text = "Epoch 1/2\n" + f"{erased}\r".join(states) + "\n"
    assert [(name, value) for name, value, *_ in found(text)] == [
        ("step_time", 0.04),
        ("loss", 0.3),
    ]


def test_epoch_of_one_step_in_a_terminal() -> None:
    states = [drawing("1/1", "0s", 0.4), drawing("1/1", "0s", 0.3)]
    text = "Epoch 1/2\n" + ("\b" * 60 + "\r").join(states) + "\n"
    assert [row[:2] for row in found(text)] == [("step_time", 0.04), ("loss", 0.3)]


def test_short_epoch_that_is_drawn_once() -> None:
    text = f"Epoch 1/2\n{drawing('10/10', '0s', 0.3)}\n"
    assert [row[:2] for row in found(text)] == [("step_time", 0.04), ("loss", 0.3)]


def test_bar_in_a_file() -> None:
    """Keras 3 ends each drawing with a line end there, and draws the last step before the end."""
    states = [drawing(" 1/400", "15s", 0.5), drawing("400/400", "0s", 0.4)]
    end = drawing("400/400", "16s", 0.3)
    assert [row[:2] for row in found("\n".join(["Epoch 1/2", *states, end, ""]))] == [
        ("epoch_time", 16.0),
        ("step_time", 0.04),
        ("loss", 0.3),
    ]


def test_end_of_a_short_epoch_is_the_second_of_two() -> None:
    states = [drawing(" 1/10", "0s", 0.5), drawing("10/10", "0s", 0.4)]
    assert not found("\n".join(["Epoch 1/2", *states, ""]))
    end = drawing("10/10", "0s", 0.3)
    assert [row[:2] for row in found("\n".join(["Epoch 1/2", *states, end, ""]))] == [
        ("step_time", 0.04),
        ("loss", 0.3),
    ]


@pytest.mark.parametrize("prefix", ["[1,0]<stdout>:", "0: ", "[rank0]: ", "    "])
def test_behind_a_prefix(prefix: str) -> None:
    text = f"Epoch 1/2\n500/500 {BAR} - 10s 20ms/step - loss: 0.2497\n"
    assert found("".join(prefix + line for line in text.splitlines(keepends=True))) == found(text)


def test_words_between_the_drawings() -> None:
    text = f"""\
Epoch 49/100
83968/84736 [============================>.] - ETA: 0s - loss: 0.3737 - accuracy: 0.8813
Epoch 00049: val_accuracy did not improve from 0.90919
84736/84736 {BAR} - 8s 93us/sample - loss: 0.3739 - accuracy: 0.8812      acy: 0.88
11005/1 - 1s - loss: 0.4222 - accuracy: 0.8964
"""
    assert [row[:2] for row in found(text)] == [
        ("epoch_time", 8.0),
        ("samples_per_second", pytest.approx(1 / 93e-6)),
        ("loss", 0.3739),
        ("accuracy", 0.8812),
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"12420/12420 {BAR} - 3s 211us/sample - loss: 0.0926 - accuracy: 0.9624\n",
        f"Epoch 1/2\n313/500 {BAR} - 3s 9ms/step - loss: 0.0926\n",
        "Epoch 1/25\n----------\ntrain Loss: 0.5000 Acc: 0.8000\n",
        "Epoch 1/2\n500/500 done - loss: 0.3000\n",
    ],
)
def test_what_is_no_epoch_of_fit(text: str) -> None:
    assert not found(text)


def test_cut_number_is_left_out() -> None:
    text = f"Epoch 1/2\n500/500 {BAR} - 10s 20ms/step - loss: 0.2497 - accuracy: 0.91"
    assert [row[0] for row in found(text)] == ["epoch_time", "step_time", "loss"]
