"""Refusals of a real sbatch 22.05: known, with the options that they are about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpc_train.lint.rules import all_rules
from hpc_train.slurm_options import sbatch_grammar
from hpc_train.submissions.slurm.sbatch import (
    advice,
    known_refusals,
    named_options,
    refusal_of,
)
from hpc_train.submissions.slurm.sbatch_test_only import answer_of
from hpc_train.subprocesses import Finished

RECORDED = json.loads(Path(__file__).with_name("refusals.json").read_text(encoding="utf-8"))
UNKNOWN = {"nul"}


@pytest.mark.parametrize("asked", RECORDED)
def test_a_recorded_answer_is_read(asked: str) -> None:
    one = RECORDED[asked]
    done = Finished(returncode=one["returncode"], stdout="", stderr=one["stderr"])
    answer = answer_of(done)
    assert answer.outcome == ("refused" if one["returncode"] else "accepted")
    assert not answer.words.startswith(("sbatch: ", "error: "))
    assert "Try " not in answer.words
    if asked in UNKNOWN or answer.outcome == "accepted":
        assert answer.refusal is None
    else:
        assert answer.refusal is not None
        assert set(one["about"]) <= set(answer.refusal.options)
        assert answer.refusal.meaning
        assert answer.refusal.advice


def test_each_form_of_refusal_is_found_before_a_more_general_one() -> None:
    limit = refusal_of(RECORDED["--qos=high --nodes=2"]["stderr"])
    assert limit is not None
    assert limit.options == ("time",)
    shortest = refusal_of(RECORDED["--time-min=30 --time=10"]["stderr"])
    assert shortest is not None
    assert shortest.options == ("time-min",)


def test_the_table_names_options_and_rules_that_exist() -> None:
    ids = [rule.id for rule in all_rules()]
    for words, refusal in known_refusals().items():
        assert words == words.lower()
        assert set(refusal.options) <= set(sbatch_grammar().long), words
        for start in refusal.same:
            assert any(one.startswith(start) for one in ids), (words, start)


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ("unrecognized option '--nods=2'; Try \"sbatch --help\"", ("nods",)),
        ("option requires an argument -- 'J'", ("job-name",)),
        ("invalid option -- 'y'", ("y",)),
        ('unrecognized --hint argument "foo", see --hint=help', ("hint",)),
        ("--mem, --mem-per-cpu, and --mem-per-gpu are exclusive", ("mem", "mem-per-cpu",
                                                                   "mem-per-gpu")),
        ("allocation failure: Kittens -- and more", ()),
    ],
)  # fmt: skip
def test_options_are_named_in_a_message(message: str, names: tuple[str, ...]) -> None:
    assert named_options(message) == names


def test_an_unknown_message_has_no_meaning() -> None:
    assert refusal_of("allocation failure: Kittens") is None
    assert advice("allocation failure: Kittens") == ""
    assert advice("Invalid qos specification").startswith("sacctmgr show associations")
