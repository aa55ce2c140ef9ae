"""Wrong arguments of each function: our own error, with place, reason and next step."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hpc_train
from hpc_train.base.errors import HpcTrainError

submit: Callable[..., Any] = hpc_train.submit
run: Callable[..., Any] = hpc_train.run
study: Callable[..., Any] = hpc_train.study
collect: Callable[..., Any] = hpc_train.collect
Call = Callable[[], object]

WRONG: dict[str, tuple[Call, str]] = {
    "no file": (lambda: submit("jov.yaml"), r"^jov\.yaml: .* did you mean 'job\.yaml'\?"),
    "file of another type": (lambda: submit(3), "^file: Expected `str`, got `int`: 3"),
    "empty file name": (lambda: submit(""), "^file: Expected .*: ''$"),
    "NUL in a file name": (lambda: submit("a\0b"), "^file: Expected .*a.x00b"),
    "a folder": (lambda: submit("."), "is a folder, not a program"),
    "unknown key": (lambda: submit("job.yaml", nodez=2), "^nodez=: .*did you mean 'nodes'"),
    "unknown dotted key": (
        lambda: submit("job.yaml", settings={"resources.nodez": 2}),
        r"^settings\['resources\.nodez'\]: ",
    ),
    "empty key": (lambda: submit("job.yaml", settings={"": 2}), r"^settings\[''\]: "),
    "key of another type": (
        lambda: submit("job.yaml", settings={1: 2}),
        "^settings: .*`str`",
    ),
    "settings as a list": (
        lambda: submit("job.yaml", settings=[1]),
        "^settings: .*`dict",
    ),
    "text for a number": (lambda: submit("job.yaml", nodes="two"), "^nodes=: .* not 'two'"),
    "absurd number": (lambda: submit("job.yaml", nodes=10**9), "^nodes=: .* from 1 to 100000"),
    "NaN": (lambda: submit("job.yaml", nodes=math.nan), "^nodes=: .* not nan"),
    "a number for a time": (lambda: submit("job.yaml", time=3600), "^time=: .* write 1h30m"),
    "an object in env": (lambda: submit("job.yaml", env={"X": object()}), "^env=: object is not"),
    "unknown site": (lambda: submit("job.yaml", site="nowhere"), "unknown site 'nowhere'"),
    "site of another type": (lambda: submit("job.yaml", site=3), "^site: Expected `str`"),
    "one text as args": (lambda: submit("train.py", "--epochs 3"), "^args: must be a list"),
    "an object in args": (lambda: submit("train.py", [None]), r"^args\[0\]: Expected"),
    "args of a job": (lambda: submit("job.yaml", ["x"]), r"^job\.yaml: arguments"),
    "a text as flag": (
        lambda: submit("study.yaml", rerun_failed="no"),
        "^rerun_failed: .*`bool`",
    ),
    "NaN hours": (lambda: submit("job.yaml", max_gpu_hours=math.nan), "^max_gpu_hours: .*: nan"),
    "negative hours": (lambda: submit("job.yaml", max_gpu_hours=-1), "^max_gpu_hours: .*: -1"),
    "results is a file": (lambda: submit("job.yaml", results="job.yaml"), "cannot be written"),
    "unknown run": (lambda: run("nothing"), "unknown run or study 'nothing'"),
    "run of another type": (lambda: run(None), "^word: Expected `str`"),
    "no logs": (lambda: collect("nothing.log"), "nothing.log"),
    "no paths": (lambda: collect([]), "^paths: the list is empty"),
    "paths of another type": (lambda: collect(5), "^paths: Expected `str`"),
    "a path of another type": (lambda: collect(["job.yaml", 5]), r"^paths\[1\]: Expected `str`"),
    "unknown format": (lambda: collect("job.yaml", "xml"), "'xml'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_an_error_of_ours_and_writes_nothing(name: str, files: Path) -> None:
    call, pattern = WRONG[name]
    before = sorted(files.rglob("*"))
    with pytest.raises(HpcTrainError, match=pattern):
        call()
    assert sorted(files.rglob("*")) == before


def test_numbers_of_numpy_are_numbers(files: Path) -> None:
    numpy = pytest.importorskip("numpy")
    with pytest.raises(HpcTrainError, match=r"^nodes=: .* not 0"):
        submit("job.yaml", nodes=numpy.int64(0), max_gpu_hours=numpy.float32(2))


def test_a_traceback_ends_with_the_next_step(files: Path) -> None:
    with pytest.raises(HpcTrainError) as error:
        submit("job.yaml", site="nowhere")
    assert error.value.hint
    assert error.value.__notes__ == [error.value.hint]


@pytest.mark.process
def test_errors_of_a_finished_run(files: Path) -> None:
    one: Any = submit("job.yaml")
    one.wait(240)
    wrong: dict[str, Call] = {
        "^rank: Expected": lambda: one.logs(rank=-1),
        "rank 7 has no log; logs: ": lambda: one.logs(rank=7),
        "^lines: Expected": lambda: one.logs(lines=0),
        "^timeout: .*: 'x'": lambda: one.wait("x"),
        "^timeout: .*: inf": lambda: one.wait(math.inf),
        "a run, not a study": lambda: study(one),
    }
    for pattern, call in wrong.items():
        with pytest.raises(HpcTrainError, match=pattern):
            call()
