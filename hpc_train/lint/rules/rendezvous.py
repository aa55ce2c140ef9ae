"""Rules on the rendezvous: its address, and the number of each rank."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.lint.control_flow import Blocks, depends
from hpc_train.lint.job_script import JobScript
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.rules.rank_and_node_counts import rank_launches
from hpc_train.lint.script_variables import Assignment
from hpc_train.model.finding import Severity

_SET_BY_TORCHRUN = ("RANK", "LOCAL_RANK", "GROUP_RANK")
_TASK_VARIABLES = ("SLURM_PROCID", "SLURM_NODEID", "SLURM_LOCALID")
# ${NAME%% *}, <<< "$NAME", echo "$NAME" | awk …
_SPLIT = re.compile(
    r"\$\{(\w{1,60})%|<<<[ \t]{0,9}\"?\$\{?(\w{1,60})"
    r"|\b(?:echo|printf)\b[^|\n$]{0,40}\$\{?(\w{1,60})\}?\"?[ \t]{0,9}\|"
)
_HOSTLIST = re.compile(r"\$\{?SLURM_(?:JOB_|STEP_)?NODELIST")


@rule(
    "HT301",
    "error",
    "rank variable expanded in the batch script",
    why="The batch script runs once, on the first node: there SLURM_PROCID, SLURM_NODEID and "
    "SLURM_LOCALID are 0, and every task gets the number 0.",
    advice="let each task expand it: srun bash -c 'torchrun --node-rank \"$SLURM_NODEID\" …', or "
    "write \\$SLURM_NODEID inside double quotes",
)
def expanded_too_early(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    single = script.asked.tasks == 1
    if single or not script.asked.batch:
        return
    launches = [one.starter == "torchrun" for one in rank_launches(script)]
    for launch in rank_launches(script):
        for word in launch.command.words:
            for name in _early(word.expanded, script.asked.nodes):
                yield RuleHit(
                    line=word.line, message=f"${name} expands here, to 0, not in the task"
                )
    for found in script.assignments:
        # A path may contain any number: it passes no rank.
        if found.inside == "task" or found.name in _TASK_VARIABLES or "/" in found.value:
            continue
        if found.name in _SET_BY_TORCHRUN and all(launches) and launches:
            continue
        for name in _early(found.word.expanded, script.asked.nodes):
            if found.exported or _starts_ranks(found):
                yield RuleHit(
                    line=found.line, message=f"${name} expands here, to 0, not in the task"
                )


def _early(names: tuple[str, ...], nodes: int | None) -> Iterator[str]:
    for name in dict.fromkeys(names):
        if name in _TASK_VARIABLES and not (name == "SLURM_NODEID" and nodes == 1):
            yield name


def _starts_ranks(found: Assignment) -> bool:
    return bool(re.search(r"torchrun|torch\.distributed|python|--node[-_]rank", found.value))


@rule(
    "HT302",
    "error",
    "variable that is never expanded",
    why="Quotes prevent the expansion in the batch shell, and srun starts the program without a "
    "shell: the program gets the literal text $SLURM_NODEID.",
    advice="start the program through a shell: srun bash -c 'torchrun --node-rank "
    '"$SLURM_NODEID" …\'',
)
def never_expanded(subject: Subject) -> Iterator[RuleHit]:
    for launch in rank_launches(subject.script):
        if launch.by_shell or launch.opaque:
            continue
        first = launch.words[0].text.rpartition("/")[2]
        if not re.fullmatch(r"torchrun|accelerate|deepspeed|python[\d.]*", first):
            continue
        for word in launch.command.words:
            for name in word.held:
                if re.match(r"SLURM_|MASTER_(ADDR|PORT)$|(LOCAL_|NODE_)?RANK$", name):
                    message = f"the program gets the literal text ${name}"
                    yield RuleHit(line=word.line, message=message)


@rule(
    "HT305",
    "warning",
    "address from hostname -i",
    why="On some clusters `hostname -i` prints 127.0.x.x, on others several addresses (as -I "
    "does): the other nodes then connect to themselves, or cannot connect.",
    advice='MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
)
def address_of_hostname(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    for found in script.settings("MASTER_ADDR", "HEAD_NODE_IP", "head_node_ip", "MASTER_IP"):
        asks = re.search(r"hostname\s+(-i|-I|--ip-address|--all-ip-addresses)\b", found.value)
        filtered = "|" in found.value and "127" in found.value
        if asks and script.asked.nodes != 1 and not filtered and not _is_split(found, script):
            picked = re.search(r"\||srun", found.value)
            severity: Severity | None = "info" if picked else None
            message = f"hostname {asks[1]} may print a loopback address, or several addresses"
            yield RuleHit(line=found.line, message=message, severity=severity)


def _is_split(found: Assignment, script: JobScript) -> bool:
    """Whether the script selects one of several addresses afterwards."""
    later = "\n".join(script.lines[found.line :])
    return any(found.name in match.groups() for match in _SPLIT.finditer(later))


@rule(
    "HT306",
    "error",
    "every node uses itself as master",
    why="Inside a step, `hostname` differs on every node, and localhost is the node itself: each "
    "node waits for the others at its own address.",
    advice="set it once, before srun: MASTER_ADDR=$(scontrol show hostnames "
    '"$SLURM_JOB_NODELIST" | head -n 1)',
)
def own_master(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if not script.asked.batch or (script.asked.nodes or 1) < 2:
        return
    addresses = script.settings("MASTER_ADDR")
    # In a branch, it may be the fallback for a run outside Slurm, or on one node.
    only = len(addresses) == 1 and not depends(script.around(addresses[0]))
    for found in addresses if only else ():
        local = found.value in ("localhost", "127.0.0.1", "0.0.0.0", "::1")  # noqa: S104 - text
        own = found.inside == "task" and re.search(
            r"\$\(hostname|`hostname|\$HOSTNAME", found.value
        )
        if local or own:
            message = f"MASTER_ADDR={found.value} is a different host on every node"
            yield RuleHit(line=found.line, message=message)
    for launch in rank_launches(script):
        if _for_one_node(script.around(launch.command)):
            continue
        for name in ("master-addr", "rdzv-endpoint"):
            value = launch.flags.get(name) or ""
            host = value.partition(":")[0] if name == "rdzv-endpoint" else value
            if host in ("localhost", "127.0.0.1") and launch.flags.get("nnodes") not in (None, "1"):
                message = f"--{name} {value} is a different host on every node"
                yield RuleHit(line=launch.starter_line, message=message)


def _for_one_node(blocks: Blocks) -> bool:
    """Whether a condition on the nodes, or on Slurm itself, decides if a command runs."""
    return any(re.search(r"nodes|SLURM_JOB_?ID", one.condition, re.IGNORECASE) for one in blocks)


@rule(
    "HT307",
    "error",
    "SLURM_LAUNCH_NODE_IPADDR as address",
    why="It is the address of the node on which srun was started, and is not set in the batch "
    "script.",
    advice='MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
)
def launch_node_address(subject: Subject) -> Iterator[RuleHit]:
    for found in subject.script.assignments:
        if "SLURM_LAUNCH_NODE_IPADDR" in found.word.expanded:
            inside = found.inside == "task"
            effect = (
                "is the address of the node that runs srun"
                if inside
                else "is not set in the batch script"
            )
            yield RuleHit(
                line=found.line,
                message=f"SLURM_LAUNCH_NODE_IPADDR {effect}",
                severity="warning" if inside else None,
            )


@rule(
    "HT308",
    "error",
    "node list used as a name",
    why="Slurm writes several nodes as a hostlist expression such as node[01-04]; with two or more "
    "nodes, cut, echo or the variable itself give no valid host name.",
    advice='MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
)
def nodelist_as_name(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if script.asked.nodes == 1:
        return
    for found in script.settings("MASTER_ADDR"):
        if _HOSTLIST.search(found.value) and not re.search(r"scontrol|python|nodeset", found.value):
            message = "a hostlist expression is not a host name"
            severity: Severity | None = None if script.asked.nodes else "warning"
            yield RuleHit(line=found.line, message=message, severity=severity)
