"""Tracebacks in the logs of one rank or of many."""

from hpc_train.diagnosis.signature_matcher import SymptomReader
from hpc_train.diagnosis.signatures import Sighting
from hpc_train.logs.line import Line
from tests.logs.sighted import ids, sighted

TRACEBACK = """\
Traceback (most recent call last):
  File "/job/train.py", line 9, in <module>
    main()
    ^^^^^^
  File "/job/model.py", line 31, in build
    raise ValueError("CUDA out of memory. Tried to allocate 1.00 GiB")
{error}
"""


def _groups(sighting: Sighting) -> dict[str, str]:
    return dict(sighting.groups)


def test_the_exception_of_a_traceback_with_its_last_frame() -> None:
    (sighting,) = sighted("step 1\n" + TRACEBACK.format(error="ValueError: heads: 3") + "step 2\n")
    assert sighting.signature == "python_exception"
    assert (sighting.line, sighting.rank, sighting.text) == (8, None, "ValueError: heads: 3")
    assert _groups(sighting) == {
        "type": "ValueError",
        "message": "heads: 3",
        "file": "/job/model.py",
        "line": "31",
    }


def test_what_is_known_is_not_just_an_exception() -> None:
    (sighting,) = sighted(TRACEBACK.format(error="OSError: [Errno 28] No space left on device"))
    assert sighting.signature == "no_space_left"
    assert _groups(sighting)["file"] == "/job/model.py"


def test_interleaved_ranks_have_one_traceback_each() -> None:
    first = TRACEBACK.format(error="ValueError: of three").splitlines()
    second = TRACEBACK.format(error="KeyError: 'of five'").splitlines()
    lines = [
        line
        for pair in zip(first, second, strict=True)
        for line in (f"[rank3]:[rank3]: {pair[0]}", f"5: [rank5]: {pair[1]}", "Epoch: 3")
    ]
    seen = sighted("\n".join(lines))
    assert [(one.rank, one.text) for one in seen] == [
        (3, "ValueError: of three"),
        (5, "KeyError: 'of five'"),
    ]


def test_lines_of_others_do_not_end_a_traceback() -> None:
    head, tail = TRACEBACK.format(error="RuntimeError: late").split("    main()\n")
    seen = ids(f"{head}Epoch: 3\nlr: 0.1\nloss 3\n    main()\n{tail}")
    assert seen == ["python_exception"]


def test_a_chain_tells_both() -> None:
    text = TRACEBACK.format(error="KeyError: 'a'") + (
        "\nDuring handling of the above exception, another exception occurred:\n\n"
    )
    seen = sighted(text + TRACEBACK.format(error="RuntimeError: no a"))
    assert [one.text for one in seen] == ["KeyError: 'a'", "RuntimeError: no a"]


def test_what_python_ignored_is_no_failure() -> None:
    text = "Exception ignored in: <function Loader.__del__ at 0x7f>\n"
    assert ids(text + TRACEBACK.format(error="AttributeError: gone")) == []
    assert ids("--- Logging error ---\n" + TRACEBACK.format(error="ValueError: x")) == []


def test_open_tracebacks_are_given_up() -> None:
    reader = SymptomReader("log")
    for number in range(400):
        reader.read(Line(b"some line", number))
    assert not reader.wants_next
    reader.read(Line(b"Traceback (most recent call last):", 400))
    assert reader.wants_next
    for number in range(100):
        reader.read(Line(b"nothing of it", number))
    assert not reader.wants_next


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
