"""Slurm's states: each of its words has a meaning, and no unknown one looks like an end."""

from __future__ import annotations

import re
import subprocess

import pytest

from hpc_train.model.submission import JobState
from hpc_train.submissions.slurm.states import job_state

# man squeue and man sacct 22.05, JOB STATE CODES.
MANUAL = (
    "BOOT_FAIL CANCELLED COMPLETED CONFIGURING COMPLETING DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY "
    "PENDING PREEMPTED RUNNING RESV_DEL_HOLD REQUEUE_FED REQUEUE_HOLD REQUEUED RESIZING REVOKED "
    "SIGNALING SPECIAL_EXIT STAGE_OUT STOPPED SUSPENDED TIMEOUT"
).split()
# Flags that libslurm can print beside them, and one of 25.11.
FLAGS = ["LAUNCH_FAILED", "UPDATE_DB", "POWER_UP_NODE", "RECONFIG_FAIL", "EXPEDITING"]


@pytest.mark.parametrize("word", [*MANUAL, *FLAGS])
def test_every_word_of_slurm_is_known(word: str) -> None:
    assert "no state that hpctrain knows" not in job_state(word)[1]


@pytest.mark.slurm
def test_the_manual_of_this_slurm_has_no_other_word() -> None:
    manual = subprocess.run(["man", "squeue"], capture_output=True, text=True, timeout=240).stdout
    codes = manual.partition("\nJOB STATE CODES")[2].partition("\nPERFORMANCE")[0]
    words = re.findall(r"^ {7}[A-Z]{1,3} +([A-Z_]+) ", codes, re.MULTILINE)
    if not words:
        pytest.skip("the manual pages of Slurm are not installed")
    assert len(words) > 20
    assert [word for word in words if word not in {*MANUAL, *FLAGS}] == []


def test_every_end_is_reached_by_some_word() -> None:
    reached = {job_state(word)[0] for word in MANUAL}
    ends = {state for state in JobState if state.finished}
    # Slurm has no word for a job that it has forgotten.
    assert ends - reached == {JobState.LOST}


@pytest.mark.parametrize(
    "word",
    "CONFIGURING COMPLETING SUSPENDED STOPPED RESIZING REQUEUED REQUEUE_HOLD REQUEUE_FED REVOKED "
    "SPECIAL_EXIT RESV_DEL_HOLD SIGNALING STAGE_OUT LAUNCH_FAILED".split(),
)
def test_a_job_on_its_way_has_not_finished(word: str) -> None:
    state, said = job_state(word)
    assert not state.finished
    assert said


# What the manual says of each, in the words of a JobState.
MEANINGS = {
    JobState.PENDING: "PENDING CONFIGURING REQUEUED REQUEUE_FED REQUEUE_HOLD RESV_DEL_HOLD "
    "SPECIAL_EXIT POWER_UP_NODE EXPEDITING",
    JobState.RUNNING: "RUNNING COMPLETING RESIZING SIGNALING STAGE_OUT",
    JobState.SUSPENDED: "SUSPENDED STOPPED",
    JobState.COMPLETED: "COMPLETED",
    JobState.FAILED: "FAILED",
    JobState.CANCELLED: "CANCELLED",
    JobState.TIMEOUT: "TIMEOUT DEADLINE",
    JobState.NODE_FAIL: "NODE_FAIL BOOT_FAIL",
    JobState.PREEMPTED: "PREEMPTED",
    JobState.OUT_OF_MEMORY: "OUT_OF_MEMORY",
    JobState.UNKNOWN: "REVOKED LAUNCH_FAILED RECONFIG_FAIL UPDATE_DB",
}


def test_the_meaning_of_every_word() -> None:
    meant = {word: state for state, words in MEANINGS.items() for word in words.split()}
    assert {word: job_state(word)[0] for word in [*MANUAL, *FLAGS]} == meant


@pytest.mark.parametrize("word", ["", " ", "HIBERNATING", "completed", "COMPLET+", "\N{SNOWMAN}"])
def test_an_unknown_word_is_unknown_and_named(word: str) -> None:
    state, said = job_state(word)
    assert state is JobState.UNKNOWN
    assert repr(word.strip()) in said


@pytest.mark.parametrize(
    ("word", "state", "said"),
    [
        ("CANCELLED", JobState.CANCELLED, ""),
        ("CANCELLED by 1000", JobState.CANCELLED, "cancelled by user id 1000"),
        ("COMPLETING", JobState.RUNNING, "it is ending"),
        ("CONFIGURING", JobState.PENDING, "its nodes are being prepared"),
        ("STOPPED", JobState.SUSPENDED, "it was stopped and keeps its nodes"),
        ("DEADLINE", JobState.TIMEOUT, "its deadline passed before it could end"),
    ],
)
def test_words_and_their_sentences(word: str, state: JobState, said: str) -> None:
    assert job_state(word) == (state, said)
