"""Rules on the rendezvous: its address, and the number of each rank."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from hpc_train.lint.control_flow import Blocks, depends, repeats
from hpc_train.lint.job_script import JobScript
from hpc_train.lint.launch_commands import LaunchCommand
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.rules.rank_and_node_counts import (
    flag_number,
    nodes_of,
    rank_launches,
)
from hpc_train.lint.script_variables import Assignment
from hpc_train.lint.shell.ast import Command
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


_RANK = re.compile(r"\$\{?(SLURM_NODEID|SLURM_PROCID)\}?")
_OTHER = {"config-file", "use-deepspeed", "deepspeed-hostfile", "tpu", "rdzv-backend"}
_HOSTS = {"hostfile", "H", "launcher", "no-ssh", "no-ssh-check", "force-multi"}
_MEETS = re.compile(
    r"--(?:nnodes|node[-_]rank|machine[-_]rank|num[-_]machines|rdzv[-_])|\bNODE_RANK=|"
    r"torch\.distributed\.(?:run|launch)|\btorchrun\b"
)
_WITH_VALUE = re.compile(
    r"--(?:(?:main_process|master)[-_](?:ip|addr|port)|num[-_](?:machines|processes|nodes|gpus)|"
    r"machine[-_]rank)"
)
_GROUP_BEHIND = re.compile(r"[)}]\s*&(?![&>])")


@rule(
    "HT230",
    "error",
    "accelerate on several nodes without a rank for each",
    why="accelerate starts one process for each node, which needs its own --machine_rank. Without "
    "it, or with the same rank on every node, the nodes wait for each other until the timeout.",
    advice="pass the rank inside the step: srun … bash -c 'accelerate launch --machine_rank "
    '"$SLURM_NODEID" …\'',
)
def no_machine_rank(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if re.search(r"\bACCELERATE_(?:CONFIG|MACHINE_RANK)", script.text):
        return
    for launch in rank_launches(script):
        machines = flag_number(launch, script, "num-machines")
        if launch.starter != "accelerate" or machines is None or machines < 2:
            continue
        if _OTHER & set(launch.flags) or _hidden(launch) or launch.opaque:
            continue
        said = _wrong_rank(launch, script)
        if said:
            yield RuleHit(line=launch.starter_line, message=said.format(machines))


def _wrong_rank(launch: LaunchCommand, script: JobScript) -> str:
    """Say what is wrong with the rank of an accelerate; empty if it may be right."""
    rank = launch.flags.get("machine-rank")
    if rank is None:
        return "" if "machine-rank" in launch.flags else "--num_machines {}, and no --machine_rank"
    if launch.outer != "srun":
        return ""
    if rank.isdigit() and (nodes_of(launch, script) or 1) > 1:
        return f"--machine_rank {rank} is the same on all {{}} nodes"
    early = {name for word in launch.command.words for name in word.expanded}
    early |= {name for one in script.assignments if one.exported for name in one.word.expanded}
    found = _RANK.fullmatch(script.values.substitute(rank))
    # HT301 finds a rank variable in the command itself, and an exported one.
    if found and not launch.by_shell and found[1] not in early:
        return f"--machine_rank is ${found[1]} of the batch script: 0 on all {{}} nodes"
    return ""


def _hidden(launch: LaunchCommand) -> bool:
    """Whether an unknown word may be an option: it is not the value of one."""
    return any(
        word.text.startswith("$") and not _WITH_VALUE.fullmatch(before.text)
        for before, word in pairwise(launch.command.words)
    )


@rule(
    "HT231",
    "error",
    "deepspeed without a list of hosts",
    why="Without a hostfile the launcher of DeepSpeed uses the GPUs of its own node only, and the "
    "other nodes are idle, or each of them trains for itself.",
    advice="write a hostfile (`HOST slots=GPUS` for each node) and pass --hostfile, or use "
    "srun … torchrun",
)
def no_hostfile(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if re.search(r"/job/hostfile|DLTS_HOSTFILE", script.text):
        return
    for launch in rank_launches(script):
        nodes = nodes_of(launch, script)
        if launch.starter != "deepspeed" or nodes is None or nodes < 2:
            continue
        if _HOSTS & set(launch.flags) or _hidden(launch) or launch.opaque:
            continue
        message = f"deepspeed without --hostfile in a job of {nodes} nodes"
        yield RuleHit(line=launch.starter_line, message=message)


@rule(
    "HT232",
    "error",
    "nodes started one after the other",
    why="ssh and srun return when their command has ended: the loop starts the second node after "
    "the training on the first has ended, which waits for the second.",
    advice="start each in the background and wait for all: ssh … & after the loop: wait",
)
def one_after_another(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if _GROUP_BEHIND.search(script.text):
        return
    for command in (*_ssh_to_variables(script), *_sruns_on_variables(script)):
        text = " ".join(word.text for word in command.words)
        if command.ending not in ("\n", ";") or not _MEETS.search(text) or _behind(text):
            continue
        if repeats(script.around(command)) and not _goes_on(script):
            message = f"{command.program} runs in the foreground of its loop"
            yield RuleHit(line=command.line, message=message)


def _behind(text: str) -> bool:
    """Whether the remote shell puts the command into the background."""
    return "&" in re.sub(r"\d?>&\d?|&>>?|&&", "", text)


def _goes_on(script: JobScript) -> bool:
    """Whether a loop, or a command in one, runs in the background."""
    return any(
        command.ending == "&" and (command.program == "done" or repeats(blocks))
        for command, blocks in script.blocks.items()
    )


def _ssh_to_variables(script: JobScript) -> Iterator[Command]:
    for command in script.runs("ssh"):
        flags = [word.text for word in command.words[1:] if word.text.startswith("-")]
        if "-f" not in flags and any(word.expanded for word in command.words[1:]):
            yield command


def _sruns_on_variables(script: JobScript) -> Iterator[Command]:
    for launch in script.launches:
        option = launch.option("nodelist") if launch.outer == "srun" else None
        if option and "$" in (option.value or ""):
            yield launch.command
