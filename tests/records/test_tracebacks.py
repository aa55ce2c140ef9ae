"""Tracebacks: which frame is the library's, which the program's."""

from __future__ import annotations

from tests.records.sighted import sighted


def test_the_program_that_called_a_library() -> None:
    frames = (
        '  File "/job/train.py", line 9, in main\n    fit()\n'
        '  File "/env/lib/python3.11/site-packages/trainer/loop.py", line 70, in fit\n    go()\n'
        '  File "/src/pytorch/torch/autograd/graph.py", line 913, in _run\n    run()\n'
    )
    text = f"Traceback (most recent call last):\n{frames}ValueError: no\n"
    (sighting,) = sighted(text)
    assert dict(sighting.groups)["file"] == "/src/pytorch/torch/autograd/graph.py"
    assert dict(sighting.groups)["caller"] == "/job/train.py:9"


def test_a_program_is_not_called_from_itself() -> None:
    text = 'Traceback (most recent call last):\n  File "/job/train.py", line 9, in main\n'
    (sighting,) = sighted(f"{text}ValueError: no\n")
    assert "caller" not in dict(sighting.groups)
