"""Slurm's reason codes of jobs -> sentences with meaning and remedy."""

from __future__ import annotations

import re

# man squeue, JOB REASON CODES; the codes in libslurm 22.05; texts of slurmctld in their place.
_SENTENCES = {
    "AccountNotAllowed": "its account may not use this partition; name another with --account",
    "AccountingPolicy": "a limit of the account or QOS keeps it waiting",
    "AssociationJobLimit": "its account has reached its number of jobs; it starts when others end",
    "AssociationResourceLimit": "its account has reached a limit; it starts when others end",
    "AssociationTimeLimit": "its account has used up its time",
    "BadConstraints": "no node can satisfy its constraints; cancel it and request others",
    "BeginTime": "its start time has not been reached: it was requested, or the job was requeued",
    "BlockFreeAction": "the nodes' block is being freed",
    "BlockMaxError": "the nodes' block had too many errors",
    "BurstBufferOperation": "an operation on its burst buffer failed or has not finished",
    "BurstBufferResources": "it waits for space in the burst buffer",
    "BurstBufferStageIn": "its files are being staged in",
    "Cleaning": "it was requeued and its previous attempt is still being cleaned up",
    "DeadLine": "it cannot end before its deadline",
    "Dependency": "it waits for another job that it depends on",
    "DependencyNeverSatisfied": "it depends on a job that did not end as needed, so it will never "
    "start; cancel it",
    "FedJobLock": "the clusters of the federation are deciding which of them runs it",
    "FrontEndDown": "no front-end node is available",
    "InactiveLimit": "it was inactive for longer than the system allows",
    "InvalidAccount": "its account is not valid; name another with --account",
    "InvalidQOS": "its QOS is not valid; name another with --qos",
    "JobArrayTaskLimit": "the maximum number of its array's elements is running",
    "JobHeldAdmin": "it is held by an administrator; only an administrator can release it",
    "JobHeldUser": "it is held by its user; release it with scontrol release",
    "JobHoldMaxRequeue": "it was requeued too often and is held; release it with scontrol release",
    "JobLaunchFailure": "it could not be started (its log, folder or node), or a signal killed it",
    "Licenses": "it waits for a license",
    "MaxMemPerLimit": "it requests more memory than is allowed; request less",
    "NodeDown": "a node that it needs is down",
    "NonZeroExitCode": "it ended with an exit code other than 0",
    "OutOfMemory": "it used more memory than it had requested",
    "PartitionConfig": "its partition does not have the requested resources: see sinfo",
    "PartitionDown": "its partition is down and starts no jobs",
    "PartitionInactive": "its partition is inactive and starts no jobs",
    "PartitionNodeLimit": "its partition has or allows too few nodes for it; see sinfo",
    "PartitionTimeLimit": "its time limit exceeds that of its partition; see sinfo",
    "PowerNotAvail": "there is not enough power to start it now",
    "PowerReserved": "it waits for power that is reserved",
    "Priority": "jobs of higher priority are scheduled first",
    "Prolog": "the site's preparation of its nodes (PrologSlurmctld) is still running",
    "QOSJobLimit": "its QOS has reached its number of jobs; it starts when others end",
    "QOSNotAllowed": "its QOS may not use this partition; name another with --qos",
    "QOSResourceLimit": "its QOS has reached a limit; it starts when others end",
    "QOSTimeLimit": "its QOS has used up its time",
    "QOSUsageThreshold": "its account has used more than its QOS allows",
    "RaisedSignal": "a signal killed it",
    "ReqNodeNotAvail": "a node that it needs is not available: in use, reserved, drained or down",
    "Reservation": "it waits for its reservation to begin",
    "ReservationDeleted": "its reservation was deleted",
    "Resources": "it is next, and waits for free nodes",
    "SchedDefer": "Slurm schedules jobs one after another and has not processed it yet",
    "SystemFailure": "Slurm, a file system or the network failed",
    "TimeLimit": "it reached its time limit",
    "WaitingForScheduling": "Slurm has not processed it yet",
    "job requeued in held state": "it was requeued and is held; release it with scontrol release",
    "job requeued in special exit state": (
        "it was requeued in a special state and is held; scontrol release"
    ),
    "launch failed requeued held": (
        "it could not be started on its nodes and is held; scontrol release"
    ),
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions": (
        "the nodes that it needs are down, drained or reserved; sinfo -R shows why"
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
    """Return the meaning of a reason of Slurm, and the remedy if any; empty for no reason."""
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
    return _limit(limit) if limit else f"Slurm's reason: {code}"


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
        return f"it requests less than the minimum of {owner} ({what}); request more"
    if per in ("PerJob", "PerNode"):
        one = per.removeprefix("Per").lower()
        return f"it requests more than {owner} allows for one {one} ({what}); request less"
    if limit["minutes"] == "Minutes" or limit["what"] == "Wall":
        return f"{owner} has used up its budget ({what})"
    jobs = f"the user's jobs in {owner}" if per == "PerUser" else f"the jobs of {owner}"
    return f"{jobs} have reached a limit ({what}); it starts when others end"
