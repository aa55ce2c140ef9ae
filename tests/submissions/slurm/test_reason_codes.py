"""Slurm's reasons: every code that it is known to print becomes a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hpc_train.submissions.slurm.reason_codes import sentence

SENTENCES = yaml.safe_load((Path(__file__).parent / "reasons.yaml").read_bytes())
# The strings of libslurm 22.05 that begin with Assoc or QOS, or end with PerAccount.
LIMITS = (Path(__file__).parent / "answers" / "limit_reasons.txt").read_text().split()
# man squeue 22.05, JOB REASON CODES, and the other codes of libslurm 22.05.
CODES = """
    AccountNotAllowed AccountingPolicy AssociationJobLimit AssociationResourceLimit
    AssociationTimeLimit BadConstraints BeginTime BlockFreeAction BlockMaxError
    BurstBufferOperation BurstBufferResources BurstBufferStageIn Cleaning DeadLine Dependency
    DependencyNeverSatisfied FedJobLock FrontEndDown InactiveLimit InvalidAccount InvalidQOS
    JobArrayTaskLimit JobHeldAdmin JobHeldUser JobHoldMaxRequeue JobLaunchFailure Licenses
    MaxMemPerLimit NodeDown NonZeroExitCode OutOfMemory PartitionConfig PartitionDown
    PartitionInactive PartitionNodeLimit PartitionTimeLimit PowerNotAvail PowerReserved Priority
    Prolog QOSJobLimit QOSNotAllowed QOSResourceLimit QOSTimeLimit QOSUsageThreshold
    ReqNodeNotAvail Reservation ReservationDeleted Resources SchedDefer SystemFailure TimeLimit
    WaitingForScheduling
""".split()
# What slurmctld 22.05 writes instead of a code.
TEXTS = [
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
    "job requeued in held state",
    "job requeued in special exit state",
    "launch failed requeued held",
]


@pytest.mark.parametrize("code", [*CODES, *LIMITS, *TEXTS])
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
