"""Slurm's reasons: every code that it is known to print becomes a sentence."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, strategies as st

from hpc_train.base.processes import Finished
from hpc_train.base.slurm_options import (
    advice,
    known_refusals,
    named_options,
    refusal_of,
    sbatch_grammar,
)
from hpc_train.diagnosis.diagnose import diagnose_logs
from hpc_train.diagnosis.diagnosis import JobEnd
from hpc_train.lint.rules import all_rules
from hpc_train.slurm.job_states import sentence
from hpc_train.slurm.sbatch import answer_of
from tests.cases import cases

ERRORS = "slurm/errors.yaml"

SENTENCES = yaml.safe_load((Path(__file__).parent / "reasons.yaml").read_bytes())
# Of man squeue 22.05, JOB REASON CODES, and the other codes of libslurm 22.05.
CODES = """
    AccountNotAllowed AssociationJobLimit AssociationResourceLimit
    AssociationTimeLimit BadConstraints BeginTime
    BurstBufferResources Cleaning DeadLine Dependency
    DependencyNeverSatisfied InvalidAccount InvalidQOS
    JobArrayTaskLimit JobHeldAdmin JobHeldUser JobHoldMaxRequeue JobLaunchFailure Licenses
    MaxMemPerLimit NodeDown NonZeroExitCode OutOfMemory PartitionConfig PartitionDown
    PartitionInactive PartitionNodeLimit PartitionTimeLimit Priority
    Prolog QOSJobLimit QOSNotAllowed QOSResourceLimit QOSTimeLimit QOSUsageThreshold
    ReqNodeNotAvail Reservation ReservationDeleted Resources SystemFailure TimeLimit
    WaitingForScheduling
""".split()
# What slurmctld 22.05 writes instead of a code.
TEXTS = [
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
    "job requeued in held state",
    "job requeued in special exit state",
    "launch failed requeued held",
]


@pytest.mark.parametrize("code", [*CODES, *TEXTS])
def test_every_reason_of_slurm_is_a_sentence(code: str) -> None:
    said = sentence(code)
    assert said
    assert "Slurm's reason" not in said
    assert "unknown" not in said
    assert sentence(f"({code})") == said
    assert sentence(code.replace(" ", "_")) == said


@pytest.mark.parametrize("reason", ["", " ", "None", "(None)", "(null)"])
def test_no_reason_is_no_sentence(reason: str) -> None:
    assert sentence(reason) == ""


@pytest.mark.parametrize(
    ("reason", "tail"),
    [
        ("ReqNodeNotAvail, UnavailableNodes:lab[2,4]", " (UnavailableNodes:lab[2,4])"),
        ("ReqNodeNotAvail, UnavailableNodes:", ""),
        ("ReqNodeNotAvail, Reserved for maintenance", " (Reserved for maintenance)"),
        ("ReqNodeNotAvail,_May_be_reserved_for_other_job", " (May_be_reserved_for_other_job)"),
    ],
)
def test_the_nodes_that_are_missing_are_named(reason: str, tail: str) -> None:
    assert sentence(reason) == sentence("ReqNodeNotAvail") + tail


@pytest.mark.parametrize(("reason", "said"), SENTENCES.items())
def test_sentences(reason: str, said: str) -> None:
    assert sentence(reason) == said


@given(st.text())
def test_no_text_breaks_it(reason: str) -> None:
    assert isinstance(sentence(reason), str)


RECORDED = json.loads(Path(__file__).with_name("refusals.json").read_text(encoding="utf-8"))
# Said of a script that Slurm reads and does not refuse.
NO_FAILURE = {"--core-spec=9", "--thread-spec=2"}


@pytest.mark.parametrize("asked", RECORDED)
def test_a_recorded_answer_is_read(asked: str) -> None:
    one = RECORDED[asked]
    done = Finished(returncode=one["returncode"], stdout="", stderr=one["stderr"])
    answer = answer_of(done)
    assert answer.outcome == ("refused" if one["returncode"] else "accepted")
    assert not answer.words.startswith(("sbatch: ", "error: "))
    assert "Try " not in answer.words
    if answer.outcome == "accepted":
        assert answer.refusal is None
    else:
        assert answer.refusal is not None
        assert set(one["about"]) <= set(answer.refusal.options)
        assert answer.refusal.meaning
        assert answer.refusal.advice


@pytest.mark.parametrize("asked", RECORDED)
def test_a_recorded_answer_in_a_log_is_diagnosed(asked: str, tmp_path: Path) -> None:
    path = tmp_path / "job.out"
    path.write_text(RECORDED[asked]["stderr"])
    found, _ = diagnose_logs([path], ["job.out"], JobEnd())
    assert (found.outcome == "failed") is (asked not in NO_FAILURE)
    assert found.root is None or found.root.id.startswith("slurm_")


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


@pytest.mark.parametrize(("message", "names"), cases(ERRORS, "names_of_options"))
def test_options_are_named_in_a_message(message: str, names: list[str]) -> None:
    assert named_options(message) == tuple(names)


def test_an_unknown_message_has_no_meaning() -> None:
    assert refusal_of("allocation failure: Kittens") is None
    assert advice("allocation failure: Kittens") == ""
    assert advice("Invalid qos specification").startswith("sacctmgr show associations")


@pytest.mark.parametrize(("said", "word"), cases(ERRORS, "words_of_advice"))
def test_a_refusal_has_a_next_step(said: str, word: str) -> None:
    assert word in advice(said)
