"""Error messages of sbatch -> remedies."""

from __future__ import annotations

_ADVICE = {
    "invalid partition": "sinfo -s lists the partitions; name one with --partition",
    "invalid account": "sacctmgr show associations user=$USER lists your accounts; --account",
    "invalid qos": "sacctmgr show associations user=$USER format=account,qos; --qos",
    "node count specification invalid": "sinfo -o '%P %D' shows the nodes of each partition",
    "requested node configuration is not available": (
        "sinfo -o '%P %D %c %m %G %f' shows the resources of the nodes; "
        "request fewer tasks, GPUs, cores or less memory"
    ),
    "more processors requested than permitted": "request fewer nodes, tasks or cores",
    "requested time limit is invalid": "sinfo -o '%P %l' shows the time limits of the partitions",
    "job violates accounting/qos policy": (
        "a limit of jobs, nodes or time of your account: sacctmgr show qos; "
        "wait for your other jobs, or request less"
    ),
    "invalid feature specification": "sinfo -o '%P %f' lists the features; --constraint",
    "invalid generic resource": "sinfo -o '%P %G' lists the GPUs",
    "memory specification can not be satisfied": "sinfo -o '%P %m' shows the nodes' memory; --mem",
    "access/permission denied": "your account may not use this partition or reservation",
    "invalid job array specification": "scontrol show config | grep MaxArraySize; set "
    "limits.max_array_size in the site profile",
    "job dependency problem": "check the dependency",
}


def advice(said: str) -> str:
    """Return the next command, or an empty text for an unknown message."""
    lowered = said.lower()
    return next((hint for words, hint in _ADVICE.items() if words in lowered), "")
