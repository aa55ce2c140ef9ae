"""A retry that is killed at random moments: nothing is lost, doubled or left in doubt.

`python -m tests.bench.kill_retry --rounds N` takes as many moments as you like.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from hpc_train.lab.state_file import Lab
from tests.bench.copies import copies
from tests.bench.kill_retry import check, failed_study, kill, measure, recover
from tests.bench.place import Place
from tests.end_to_end.user import User

pytestmark = [pytest.mark.long, pytest.mark.slurm]


def test_killed_at_some_moments(user: User, lab: Lab) -> None:
    environment = {**user.environment, "SLURM_CONF": f"{lab.settings.folder}/slurm.conf"}
    at = Place(folder=user.folder, name="killed", site="lab", environment=environment)
    original = failed_study(at)
    moments = measure(copies(at, original, range(1, 3)))
    at.wait()
    luck = random.Random(0)  # noqa: S311 - moments, no secret
    # Only odd numbers are killed with their sbatch, after which the doubt takes two minutes.
    found = copies(at, original, range(4, 14, 2))
    stages = [kill(copy, moments, luck) for copy in found]
    recover(found)
    counts: Counter[str] = Counter()
    for copy in found:
        counts.update(check(copy))
    del counts["never accepted"]
    assert set(counts.values()) == {0}, (counts, stages)
