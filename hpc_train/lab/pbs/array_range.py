"""The range of -J -> the indices of a job array, or the refusal of a real qsub."""

from __future__ import annotations

import re

from hpc_train.lab.pbs.resource_list import RefusedError
from hpc_train.model.value import Value

_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})(?::([0-9]{1,9}))?(?:%([0-9]{1,9}))?")
# max_array_size of its server.
MOST_SUBJOBS = 10_000


class ArrayRange(Value, frozen=True, kw_only=True):
    """The indices of an array as they were submitted, and how many subjobs may run at once."""

    text: str
    first: int
    last: int
    step: int = 1
    most_running: int | None = None

    @property
    def indices(self) -> range:
        """Return the indices of the subjobs."""
        return range(self.first, self.last + 1, self.step)


def read_array(text: str) -> ArrayRange:
    """Read `0-9`, `1-9:2` or `1-9%3`.

    Raises:
        RefusedError: another text, such as `2,4`, one index only, or too many.
    """
    match = _RANGE.fullmatch(text)
    if match is None:
        raise RefusedError(2, "illegal -J value")
    first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
    if first >= last or step < 1 or match[4] == "0":
        raise RefusedError(2, "illegal -J value")
    found = ArrayRange(
        text=text.partition("%")[0],
        first=first,
        last=last,
        step=step,
        most_running=int(match[4]) if match[4] else None,
    )
    if len(found.indices) > MOST_SUBJOBS:
        raise RefusedError(3, "Array job exceeds server or queue size limit")
    return found
