"""The catalogue of failures keeps its promises."""

import io
import re
import time
from pathlib import Path

import pytest
import yaml

from hpc_train.diagnosis.signature_matcher import SymptomReader
from hpc_train.diagnosis.signatures import Signature, explain, packaged
from hpc_train.logs.line import dispatch
from tests.logs.sighted import ids, sighted

SIGNATURES = packaged()
BY_ID = {signature.id: signature for signature in SIGNATURES}
LINES = yaml.safe_load((Path(__file__).parent / "signature_lines.yaml").read_bytes())


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda signature: signature.id)
def test_an_example_is_seen_as_what_it_is(signature: Signature) -> None:
    seen = sighted(signature.example)
    assert [one.signature for one in seen] == [signature.id]
    told = explain(signature, seen[0])
    for text in (told.title, told.cause, told.advice):
        assert text
        assert not re.search(r"[{}?]", text)
        assert len(text) <= 400


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda signature: signature.id)
def test_hostile_lines_take_no_time(signature: Signature) -> None:
    example = signature.example.splitlines()[-1]
    for token in {*example.split(), *signature.literals, "1", "(", " "}:
        for text in (
            f"{token} " * (64_000 // len(token)),
            example[: len(example) // 2] + token * 3200,
        ):
            started = time.process_time()
            signature.compiled.search(text)
            # Where time grows with the square of the length, it is minutes.
            assert time.process_time() - started < 10


def test_what_is_no_text_is_no_trouble() -> None:
    for signature in SIGNATURES:
        raw = signature.example.encode()
        for cut in range(0, len(raw), 7):
            sighted(raw[:cut] + b"\xff\x00\x1b[31m" + raw[cut:])


def test_of_very_many_only_some_are_kept() -> None:
    reader = SymptomReader("log")
    log = io.BytesIO(b"srun: error: n1: task 0: Exited with exit code 1\n" * 1000)
    kept = sum(len(reader.read(line)) for line, _ in dispatch(log, [reader]))
    assert kept == 200
    assert reader.counts["exit_error"] == 1000


@pytest.mark.parametrize(
    ("line", "name"), [(line, name) for name, lines in LINES.items() for line in lines]
)
def test_what_logs_of_other_versions_say(line: str, name: str) -> None:
    assert ids(line) == ([] if name == "nothing" else [name])


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("task 0", "Task 0 on n1 ended with exit code 1"),
        ("tasks 0-3,7", "Tasks 0-3,7 on n1 ended with exit code 1"),
    ],
)
def test_one_task_is_no_plural(said: str, title: str) -> None:
    (seen,) = sighted(f"srun: error: n1: {said}: Exited with exit code 1")
    assert explain(BY_ID[seen.signature], seen).title == title
