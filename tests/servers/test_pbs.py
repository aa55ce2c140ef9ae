"""What the small PBS says of jobs is what a recorded OpenPBS 23.06 says of its own."""

from pathlib import Path

from hpc_train.pbs.jobs import Attributes, entries
from tests.servers.pbs import RunningPbs, pbs
from tests.submissions.waiting import wait_for

__all__ = ["pbs"]
RECORDED = Path(__file__).parents[1] / "pbs" / "answers"


def test_attributes_have_the_names_of_recorded_ones(pbs: RunningPbs) -> None:
    recorded = entries((RECORDED / "qstat-xf.txt").read_text(), "Job Id: ")["3.r2h1"]
    words = (pbs.submit("exit 1", "-j", "oe", "-k", "doe"), pbs.submit("exit 9"))

    def asked() -> Attributes:
        return entries(pbs.command("qstat", "-x", "-f", *words).stdout, "Job Id: ")

    wait_for(lambda: [one["job_state"] for one in asked().values()] == ["F", "F"])
    assert all(one.keys() <= recorded.keys() for one in asked().values())
    assert [one["Exit_status"] for one in asked().values()] == ["1", "9"]
