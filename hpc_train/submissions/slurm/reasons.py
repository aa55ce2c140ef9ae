"""Slurm's codes for why a job waits or ended -> sentences: what they mean, what helps."""

from __future__ import annotations

import re

# man squeue, JOB REASON CODES; the codes in libslurm 22.05; what slurmctld writes in their place.
_SENTENCES = {
    "AccountNotAllowed": "its account may not use this partition; name another with --account",
    "AccountingPolicy": "a limit of the account or QOS keeps it waiting",
    "AssociationJobLimit": "its account has as many jobs as it may; it starts when others end",
    "AssociationResourceLimit": "its account has reached a limit; it starts when others end",
    "AssociationTimeLimit": "its account has used up its time",
    "BadConstraints": "no node can satisfy its constraints; cancel it and ask for others",
    "BeginTime": "its start time has not come: it was asked for, or it was put back into the queue",
    "BlockFreeAction": "the nodes' block is being freed",
    "BlockMaxError": "the nodes' block had too many errors",
    "BurstBufferOperation": "an operation on its burst buffer failed or is not done",
    "BurstBufferResources": "it waits for room in the burst buffer",
    "BurstBufferStageIn": "its files are being staged in",
    "Cleaning": "it was put back into the queue and its previous attempt is still being cleaned up",
    "DeadLine": "it cannot end before its deadline",
    "Dependency": "it waits for another job that it depends on",
    "DependencyNeverSatisfied": "it depends on a job that did not end as needed, so it will never "
    "start; cancel it",
    "FedJobLock": "the clusters of the federation are deciding which of them runs it",
    "FrontEndDown": "no front-end node is available",
    "InactiveLimit": "it was inactive for longer than the system allows",
    "InvalidAccount": "its account is not valid; name another with --account",
    "InvalidQOS": "its QOS is not valid; name another with --qos",
    "JobArrayTaskLimit": "as many elements of its array run as may at once",
    "JobHeldAdmin": "it is held by an administrator, who alone can release it",
    "JobHeldUser": "it is held by its user; scontrol release lets it go",
    "JobHoldMaxRequeue": "it was put back into the queue too often and is held; scontrol release",
    "JobLaunchFailure": "it could not be started (its log, folder or node), or a signal killed it",
    "Licenses": "it waits for a license",
    "MaxMemPerLimit": "it asks for more memory than it may; ask for less",
    "NodeDown": "a node that it needs is down",
    "NonZeroExitCode": "it ended with an exit code other than 0",
    "OutOfMemory": "it needed more memory than it had asked for",
    "PartitionConfig": "its partition cannot give what it asks for: sinfo",
    "PartitionDown": "its partition is down and starts no jobs",
    "PartitionInactive": "its partition is inactive and starts no jobs",
    "PartitionNodeLimit": "its partition has too few nodes for it, or allows too few; sinfo says "
    "how many",
    "PartitionTimeLimit": "its time is longer than its partition allows; sinfo says how long",
    "PowerNotAvail": "there is not enough power to start it now",
    "PowerReserved": "it waits for power that is reserved",
    "Priority": "jobs of higher priority go first",
    "Prolog": "the site's preparation of its nodes (PrologSlurmctld) is still running",
    "QOSJobLimit": "its QOS has as many jobs as it may; it starts when others end",
    "QOSNotAllowed": "its QOS may not use this partition; name another with --qos",
    "QOSResourceLimit": "its QOS has reached a limit; it starts when others end",
    "QOSTimeLimit": "its QOS has used up its time",
    "QOSUsageThreshold": "its account has used more than its QOS allows",
    "RaisedSignal": "a signal killed it",
    "ReqNodeNotAvail": "a node that it needs is not available: in use, reserved, drained or down",
    "Reservation": "it waits for its reservation to begin",
    "ReservationDeleted": "its reservation was deleted",
    "Resources": "it is next, and waits for nodes to become free",
    "SchedDefer": "Slurm schedules jobs one after another and has not come to it",
    "SystemFailure": "Slurm, a file system or the network failed",
    "TimeLimit": "it reached its time limit",
    "WaitingForScheduling": "Slurm has not looked at it yet",
    "job requeued in held state": "it was put back into the queue and is held; scontrol release "
    "lets it go",
    "job requeued in special exit state": "it was put back into the queue in a special state and "
    "is held; scontrol release lets it go",
    "launch failed requeued held": "it could not be started on its nodes and is held; scontrol "
    "release lets it try again",
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions": (
        "the nodes that it needs are down, drained or reserved; sinfo -R says why"
    ),
}
_LIMIT = re.compile(
    r"(?P<whose>Assoc|QOS|)(?P<kind>Grp|Max|Min)(?P<what>[A-Z][A-Za-z]*?)"
    r"(?P<minutes>RunMinutes|Minutes|)(?P<per>Per[A-Z][a-z]+|)(?:Limit|NotSatisfied|)"
)
_WHAT = {
    "BB": "burst buffer",
    "CPU": "cores",
    "Cpu": "cores",
    "GRES": "GPUs",
    "License": "licenses",
    "Mem": "memory",
    "Node": "nodes",
    "SubmitJob": "jobs in the queue",
    "SubmitJobs": "jobs in the queue",
    "Unknown": "a resource",
    "Wall": "time",
    "WallDuration": "time",
}
_WHOSE = {"Assoc": "its account", "QOS": "its QOS", "": "its account"}


def sentence(reason: str) -> str:
    """Say what a reason of Slurm means, and what to do where that helps; nothing for no reason."""
    code = reason.strip()
    if code.startswith("(") and code.endswith(")"):
        code = code[1:-1]
    if code in ("", "None", "null"):
        return ""
    # scontrol writes underscores in the place of spaces.
    spaced = code.replace("_", " ")
    if spaced in _SENTENCES:
        return _SENTENCES[spaced]
    name, tail = _split(code)
    if name in _SENTENCES:
        return f"{_SENTENCES[name]} ({tail})" if tail else _SENTENCES[name]
    limit = _LIMIT.fullmatch(code)
    return _limit(limit) if limit else f"Slurm says: {code}"


def _split(code: str) -> tuple[str, str]:
    """Split what Slurm appends: `ReqNodeNotAvail, UnavailableNodes:lab2`, `RaisedSignal:9`."""
    mark = re.search("[,:]", code)
    if mark is None:
        return code, ""
    tail = code[mark.end() :].strip(" _")
    return code[: mark.start()], "" if tail.endswith(":") else tail


def _limit(limit: re.Match[str]) -> str:
    owner, kind, per = _WHOSE[limit["whose"]], limit["kind"], limit["per"]
    what = _WHAT.get(limit["what"], limit["what"].lower())
    if limit["minutes"]:
        what = f"minutes of {what}"
    if kind == "Min":
        return f"it asks for less than the least that {owner} allows ({what}); ask for more"
    if per in ("PerJob", "PerNode"):
        one = per.removeprefix("Per").lower()
        return f"it asks for more than {owner} allows for one {one} ({what}); ask for less"
    if limit["minutes"] == "Minutes" or limit["what"] == "Wall":
        return f"{owner} has used up its budget ({what})"
    jobs = f"the user's jobs in {owner}" if per == "PerUser" else f"the jobs of {owner}"
    return f"{jobs} have reached a limit ({what}); it starts when others end"
