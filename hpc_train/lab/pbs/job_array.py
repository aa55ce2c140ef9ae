"""What happens to a job array of the small PBS when its subjobs start and end."""

from __future__ import annotations

import time

from hpc_train.lab.pbs.job import PbsJob

_BEGUN, _ENDED, _FAILED, _DELETED = 70, 92, 93, 91


def follow_members(array: PbsJob) -> None:
    """Begin an array with its first subjob, and end it after the last one.

    Its exit status is 1 if that of a subjob is not 0 (qstat(1B)).
    """
    if array.has_ended:
        return
    codes = [one.exit_status for one in array.members if one.exit_status is not None]
    begun = [one.started for one in array.members if one.started is not None]
    if begun and array.state == "Q":
        array.state, array.substate, array.started = "B", _BEGUN, min(begun)
        array.comment = f"Job Array Began at {time.strftime('%a %b %d at %H:%M')}"
    array.exit_status = int(any(codes)) if codes else None
    if all(one.has_ended for one in array.members):
        array.state, array.ended = "F", time.time()
        if array.substate != _DELETED:
            array.substate = _FAILED if array.exit_status else _ENDED


def may_start(job: PbsJob) -> bool:
    """Whether the array of a job, if it has one, lets it start."""
    array, limit = job.array, job.request.array
    if array is None or limit is None:
        return True
    if array.state == "H":
        return False
    most = limit.most_running
    return most is None or sum(one.state == "R" for one in array.members) < most
