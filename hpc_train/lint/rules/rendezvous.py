"""Rules on the rendezvous: its address and port, and the number of each rank."""

import re
from collections.abc import Iterator

from hpc_train.base.shell import depends, repeats
from hpc_train.base.values import Severity
from hpc_train.lint.directives import gpu_count
from hpc_train.lint.launches import LaunchCommand
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.script import JobScript, flag_number, nodes_of, rank_launches
from hpc_train.sites.batch_system import find_batch_system

_SET_BY_TORCHRUN = ("RANK", "LOCAL_RANK", "GROUP_RANK")
_TASK_VARIABLES = ("SLURM_PROCID", "SLURM_NODEID", "SLURM_LOCALID")
# ${NAME%% *}, <<< "$NAME", echo "$NAME" | awk …
_SPLIT = re.compile(
    r"\$\{(\w{1,60})%|<<<[ \t]{0,9}\"?\$\{?(\w{1,60})"
    r"|\b(?:echo|printf)\b[^|\n$]{0,40}\$\{?(\w{1,60})\}?\"?[ \t]{0,9}\|"
)
_STARTS_RANKS = re.compile(r"torchrun|torch\.distributed|python|--node[-_]rank")
_NODES = re.compile(r"nodes|SLURM_JOB_?ID", re.IGNORECASE)
_HOSTLIST = re.compile(r"\$\{?SLURM_(?:JOB_|STEP_)?NODELIST")


@rule(
    "HT301",
    "error",
    "rank variable expanded in the batch script",
    advice="let each task expand it",
)
def expanded_too_early(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if script.asked.tasks == 1 or not script.asked.batch:
        return
    launches = list(rank_launches(script))
    by_torchrun = launches and all(one.starter == "torchrun" for one in launches)
    for launch in launches:
        for word in launch.command.words:
            yield from _early(word.expanded, script.asked.nodes, word.line)
    for found in script.assignments:
        # A path may contain any number: it passes no rank.
        if found.inside == "task" or found.name in _TASK_VARIABLES or "/" in found.value:
            continue
        if found.name in _SET_BY_TORCHRUN and by_torchrun:
            continue
        if found.exported or _STARTS_RANKS.search(found.value):
            yield from _early(found.word.expanded, script.asked.nodes, found.line)


def _early(names: tuple[str, ...], nodes: int | None, line: int) -> Iterator[RuleHit]:
    for name in dict.fromkeys(names):
        if name in _TASK_VARIABLES and not (name == "SLURM_NODEID" and nodes == 1):
            task = f"srun bash -c '… \"${name}\" …', or write \\${name} inside double quotes"
            advice = f"let each task expand it: {task}"
            yield RuleHit(line, f"${name} expands here, to 0, not in the task", advice=advice)


@rule(
    "HT302",
    "error",
    "variable that is never expanded",
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
                    yield RuleHit(word.line, f"the program gets the literal text ${name}")


@rule(
    "HT305",
    "warning",
    "address from hostname -i",
    advice='MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
)
def address_of_hostname(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    for line, name, value in _addresses(script):
        asks = re.search(r"hostname\s+(-i|-I|--ip-address|--all-ip-addresses)\b", value)
        filtered = "|" in value and "127" in value
        # The script may select one of several addresses afterwards.
        later = _SPLIT.finditer("\n".join(script.lines[line:]))
        split = any(name in match.groups() for match in later)
        if asks and script.asked.nodes != 1 and not filtered and not split:
            picked = re.search(r"\||srun", value)
            severity: Severity | None = "info" if picked else None
            message = f"hostname {asks[1]} may print a loopback address, or several addresses"
            yield RuleHit(line, message, severity=severity)


_PORT = re.compile(r":(?:\d{1,5}|\$(?:\w+|\{.*|\(\(.*))$")


def _addresses(script: JobScript) -> Iterator[tuple[int, str, str]]:
    """Yield each address of a rendezvous: line, variable or option, host."""
    names = ("MASTER_ADDR", "HEAD_NODE_IP", "head_node_ip", "MASTER_IP")
    for found in script.settings(*names):
        yield found.line, found.name, found.value
    for launch in rank_launches(script):
        for name in ("master-addr", "main-process-ip", "rdzv-endpoint"):
            host = _PORT.sub("", launch.flags.get(name) or "")
            variable = _ONE_VARIABLE.fullmatch(host)
            # The setting is judged above.
            if host and not (variable and variable[1] in names):
                yield launch.starter_line, f"--{name}", host


# An address, or the name of a node, which has a number.
_HOST = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}|[A-Za-z][A-Za-z-]{0,60}\d[\w.-]{0,200}")


@rule(
    "HT306",
    "error",
    "every node uses itself as master",
    advice="set it once, before srun: MASTER_ADDR=$(scontrol show hostnames "
    '"$SLURM_JOB_NODELIST" | head -n 1)',
)
def own_master(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if not script.asked.batch or (script.asked.nodes or 1) < 2:
        return
    addresses = script.settings("MASTER_ADDR")
    for line, name, value in _addresses(script):
        if re.search(r"\|\|\s*echo\s+[\"']?(?:localhost|127\.0\.0\.1)", value):
            message = f"{name} falls back to localhost, which is a different host on every node"
            yield RuleHit(line, message, severity="warning")
    # In a branch, it may be the fallback for a run outside Slurm, or on one node.
    only = len(addresses) == 1 and not depends(script.around(addresses[0]))
    for found in addresses if only else ():
        local = found.value in ("localhost", "127.0.0.1", "0.0.0.0", "::1")  # noqa: S104 - text
        named = re.search(r"\$\(hostname|`hostname|\$HOSTNAME", found.value)
        own = named if found.inside == "task" else None
        default = re.fullmatch(r"\$\{MASTER_\w+:?[-=](?:localhost|127\.0\.0\.1)\}", found.value)
        if local or own or default:
            message = f"MASTER_ADDR={found.value} is a different host on every node"
            yield RuleHit(found.line, message)
    yield from _fixed_hosts(script)


def _fixed_hosts(script: JobScript) -> Iterator[RuleHit]:
    for launch in rank_launches(script):
        # A condition on the nodes, or on Slurm itself, decides whether it runs.
        if any(_NODES.search(block.condition) for block in script.around(launch.command)):
            continue
        for name in ("master-addr", "rdzv-endpoint"):
            value = launch.flags.get(name) or ""
            host = value.partition(":")[0] if name == "rdzv-endpoint" else value
            several = launch.flags.get("nnodes") not in (None, "1")
            if several and host in ("localhost", "127.0.0.1"):
                message = f"--{name} {value} is a different host on every node"
                yield RuleHit(launch.starter_line, message)
            elif several and _HOST.fullmatch(host) and not script.asked.has("nodelist"):
                message = f"--{name} {value} is a fixed host, which the job may not get"
                yield RuleHit(launch.starter_line, message, severity="warning")


@rule(
    "HT318",
    "error",
    "several nodes without an address",
    advice='write --rdzv-backend=c10d --rdzv-endpoint="$MASTER_ADDR:$MASTER_PORT"',
)
def no_address(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    for launch in rank_launches(script, "torchrun") if "PET_" not in script.text else ():
        given = {"master-addr", "rdzv-endpoint", "standalone"} & set(launch.flags)
        several = (flag_number(launch, script, "nnodes") or 1) > 1
        if several and not given and not launch.hides:
            message = "neither --rdzv-endpoint nor --master-addr for several nodes"
            yield RuleHit(launch.starter_line, message)


@rule(
    "HT307",
    "error",
    "SLURM_LAUNCH_NODE_IPADDR as address",
    advice='MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
)
def launch_node_address(subject: Subject) -> Iterator[RuleHit]:
    for found in subject.script.assignments:
        if "SLURM_LAUNCH_NODE_IPADDR" in found.word.expanded:
            severity: Severity | None = "warning" if found.inside == "task" else None
            effect = "is not set in the batch script"
            if severity:
                effect = "is the address of the node that runs srun"
            yield RuleHit(found.line, f"SLURM_LAUNCH_NODE_IPADDR {effect}", severity=severity)
    for launch in rank_launches(subject.script):
        words = launch.command.words
        if any("SLURM_LAUNCH_NODE_IPADDR" in word.expanded for word in words):
            yield RuleHit(launch.line, "SLURM_LAUNCH_NODE_IPADDR is not set in the batch script")


@rule(
    "HT308",
    "error",
    "node list used as a name",
    advice='MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
)
def nodelist_as_name(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if script.asked.nodes == 1:
        return
    severity: Severity | None = None if script.asked.nodes else "warning"
    for line, name, value in _addresses(script):
        if _HOSTLIST.search(value) and not re.search(r"scontrol|python|nodeset", value):
            yield RuleHit(line, "a hostlist expression is not a host name", severity=severity)
        elif _several_names(value, script):
            message = f"{name} has the names of all nodes, one per line: the first is | head -n 1"
            yield RuleHit(line, message, severity=severity)


_ONE_VARIABLE = re.compile(r"\$\{?(\w+)(?:\[0\])?\}?")


def _several_names(value: str, script: JobScript) -> bool:
    """Whether an address is the whole output of `scontrol show hostnames`."""
    match = _ONE_VARIABLE.fullmatch(value)
    if re.fullmatch(r"\$\{\w+\[[@*]\]\}", value):
        return True
    if match is None:
        return _ALL_NAMES.fullmatch(value) is not None
    source = script.values.once.get(match[1])
    if source is None or not source.word.items:
        return source is not None and _ALL_NAMES.fullmatch(source.value) is not None
    # Quotes make an array of one element.
    first = source.word.items[0]
    return first.raw.startswith('"$(') and _ALL_NAMES.fullmatch(first.text) is not None


_ALL_NAMES = re.compile(r"(?:\$\(|`)\s*scontrol\s+show\s+host(?:name|names)?\b[^|]{0,200}(?:\)|`)")


@rule(
    "HT315",
    "error",
    "rendezvous that differs on every node",
    advice="use $SLURM_JOB_ID, or set the variable before srun",
)
def different_on_nodes(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    for launch in rank_launches(script, outer="srun"):
        if not launch.by_shell or (nodes_of(launch, script) or 1) < 2:
            continue
        raw = " ".join(
            word.raw for word in launch.command.words if word.held or word.raw[:1] == "'"
        )
        chance = re.search(r"\\?\$\{?RANDOM|RANDOM %|\$\((?:date|shuf|uuidgen)|`(?:date|shuf)", raw)
        names = ("rdzv-id", "rdzv-endpoint", "master-port", "main-process-port")
        texts = [f"--{name}={launch.flags.get(name) or ''}" for name in names]
        texts += [
            f"{one.name}={one.value}"
            for one in script.settings(*_PORTS, "RDZV_ID")
            if one.inside == "task"
        ]
        wrong = [text for text in texts if re.search(r"RANDOM|\$\((?:date|shuf|uuidgen)|`", text)]
        if chance and wrong:
            yield RuleHit(launch.starter_line, f"{wrong[0]} differs on every node")


@rule(
    "HT316",
    "warning",
    "WORLD_SIZE is the number of nodes",
    advice='export WORLD_SIZE="$SLURM_NTASKS"',
)
def world_of_nodes(subject: Subject) -> Iterator[RuleHit]:
    script, asked = subject.script, subject.script.asked
    several = asked.tasks and asked.nodes and asked.tasks > asked.nodes
    if not several or not any(rank_launches(script, "python")):
        return
    for found in script.settings("WORLD_SIZE"):
        if re.fullmatch(r"\$\{?SLURM_(?:NNODES|JOB_NUM_NODES)\}?", found.value):
            have = f"is {asked.nodes}, but the job has {asked.tasks} tasks"
            yield RuleHit(found.line, f"WORLD_SIZE={found.value} {have}")


@rule(
    "HT317",
    "warning",
    "one port for all elements of an array",
    advice="derive it from SLURM_JOB_ID: MASTER_PORT=$((61000 + SLURM_JOB_ID % 4000))",
)
def port_of_array(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if not script.asked.has("array") or script.asked.has("exclusive"):
        return
    for line, text in _ports(subject):
        if "SLURM_ARRAY_JOB_ID" in text and "ARRAY_TASK_ID" not in text:
            yield RuleHit(line, f"the port {text} is the same for all elements")


_RANK = re.compile(r"\$\{?(SLURM_NODEID|SLURM_PROCID)\}?")
_OTHER = {"use-deepspeed", "deepspeed-hostfile", "tpu", "rdzv-backend"}
_HOSTS = {"hostfile", "H", "launcher", "no-ssh", "no-ssh-check", "force-multi"}
_MEETS = re.compile(
    r"--(?:nnodes|node[-_]rank|machine[-_]rank|num[-_]machines|rdzv[-_])|\bNODE_RANK=|"
    r"torch\.distributed\.(?:run|launch)|\btorchrun\b"
)
_GROUP_BEHIND = re.compile(r"[)}]\s*&(?![&>])")


@rule(
    "HT230",
    "error",
    "accelerate on several nodes without a rank for each",
    advice="pass the rank inside the step: srun … bash -c 'accelerate launch --machine_rank "
    '"$SLURM_NODEID" …\'',
)
def no_machine_rank(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if re.search(r"\bACCELERATE_(?:CONFIG|MACHINE_RANK)", script.text):
        return
    for launch in rank_launches(script, "accelerate"):
        machines = flag_number(launch, script, "num-machines")
        if _OTHER & set(launch.flags) or launch.hides or launch.opaque:
            continue
        if "config-file" in launch.flags:
            several = launch.outer == "srun" and (nodes_of(launch, script) or 1) > 1
            if several and "machine-rank" not in launch.flags:
                message = "no --machine_rank: every node uses that of the configuration file"
                yield RuleHit(launch.starter_line, message, severity="warning")
            continue
        if machines is None or machines < 2:
            continue
        said = _wrong_rank(launch, script)
        if said:
            yield RuleHit(launch.starter_line, said.format(machines))


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


@rule(
    "HT231",
    "error",
    "deepspeed without a list of hosts",
    advice="write a hostfile (`HOST slots=GPUS` for each node) and pass --hostfile, or use "
    "srun … torchrun",
)
def no_hostfile(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if re.search(r"/job/hostfile|DLTS_HOSTFILE", script.text):
        return
    for launch in rank_launches(script, "deepspeed"):
        nodes = nodes_of(launch, script) or 1
        if nodes > 1 and not (_HOSTS & set(launch.flags) or launch.hides or launch.opaque):
            message = f"deepspeed without --hostfile in a job of {nodes} nodes"
            yield RuleHit(launch.starter_line, message)


@rule(
    "HT232",
    "error",
    "nodes started one after the other",
    advice="start each in the background and wait for all: ssh … & after the loop: wait",
)
def one_after_another(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if _GROUP_BEHIND.search(script.text):
        return
    commands = [
        command
        for command in script.runs("ssh")
        if not any(word.text == "-f" for word in command.words)
        and any(word.expanded for word in command.words[1:])
    ]
    for launch in script.launches:
        option = launch.option("nodelist") if launch.outer == "srun" else None
        commands += [launch.command] if option and "$" in (option.value or "") else []
    for command in commands:
        text = " ".join(word.text for word in command.words)
        # The remote shell may put the command into the background.
        behind = "&" in re.sub(r"\d?>&\d?|&>>?|&&", "", text)
        if command.ending not in ("\n", ";") or not _MEETS.search(text) or behind:
            continue
        # The loop, or a command in one.
        ends = (one for one in script.commands if one.ending == "&")
        goes_on = any(one.program == "done" or repeats(script.around(one)) for one in ends)
        if repeats(script.around(command)) and not goes_on:
            yield RuleHit(command.line, f"{command.program} runs in the foreground of its loop")


_PORTS = ("MASTER_PORT", "RDZV_PORT", "PORT", "MAIN_PROCESS_PORT")
_EPHEMERAL = range(32768, 61000)
_SERVER = re.compile(r"vllm(?:\.|$)|sglang(?:\.|$)|tritonserver$")
# Of texts without blanks.
_SHUF = re.compile(r"(?:\$\(|`)shuf[^|]*?(?:-i|--input-range=)(\d{1,5})-(\d{1,5})[^|]*")
_MODULO = re.compile(r"\$\(\((?:(\d{1,5})\+)?[^%+]{1,99}%(\d{1,5})\)?(?:\+(\d{1,5}))?\)\)")


@rule(
    "HT303",
    "warning",
    "fixed port",
    advice="derive it from the job: MASTER_PORT=$((61000 + SLURM_JOB_ID % 4000))",
)
def fixed_port(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    site = subject.context.site
    whole = script.asked.has("exclusive") or script.asked.value("mem") == "0"
    if whole or (site and find_batch_system(site.scheduler).whole_nodes):
        return
    for line, text in _ports(subject):
        if re.fullmatch(r"\d{3,5}", text) and int(text) > 0:
            # Nodes have eight GPUs, or fewer: none is left for another job.
            per_task = gpu_count(script.asked.value("gpus-per-task") or "")
            each = script.asked.gpus_per_node or per_task
            shared = text == "29500" or script.asked.has("array")
            severity: Severity | None = None if shared and (each or 0) < 8 else "info"
            yield RuleHit(line, f"port {text} is the same for every job", severity=severity)


def _ports(subject: Subject) -> Iterator[tuple[int, str]]:
    """Yield the ports of a rendezvous, each once."""
    script = subject.script
    launches = list(rank_launches(script))
    names = [[text.rpartition("/")[2] for text in launch.texts] for launch in launches]
    # A server that is the only program chooses its own port.
    serves = bool(names) and all(any(map(_SERVER.match, every)) for every in names)
    given = script.settings(*_PORTS)
    found = [(x.line, x.value) for x in given if not (serves and x.name == "MASTER_PORT")]
    for launch in launches:
        for name in ("master-port", "rdzv-endpoint", "main-process-port"):
            text = script.values.substitute(launch.flags.get(name) or "")
            found.append((launch.starter_line, text.rpartition(":")[2]))
        for word in launch.command.words:
            if word.text.removeprefix("--dist-url=").startswith("tcp://"):
                found.append((word.line, word.text.rpartition(":")[2]))
    once = {text: line for line, text in reversed(found)}
    yield from ((line, text) for line, text in found if once.pop(text, None) is not None)


@rule(
    "HT304",
    "info",
    "port that may be refused",
    advice="choose a port from 61000 on: MASTER_PORT=$((61000 + SLURM_JOB_ID % 4000))",
)
def ephemeral_port(subject: Subject) -> Iterator[RuleHit]:
    for line, text in _ports(subject):
        low, high = _range(text)
        if low < high and low < 1024:
            message = f"the port {text} can be as low as {low}"
            yield RuleHit(line, message, severity="warning")
        elif low < high and low < _EPHEMERAL.stop and high >= _EPHEMERAL.start:
            message = f"ports {low} to {high} are partly ephemeral (32768 to 60999)"
            yield RuleHit(line, message)


def _range(text: str) -> tuple[int, int]:
    """Return the ports that an expression can give; nothing, 0 to 0, if they are unknown."""
    text = "".join(text.split())
    if re.fullmatch(r"\$\{?RANDOM\}?", text):
        return 0, 32767
    drawn, modulo = _SHUF.fullmatch(text), _MODULO.fullmatch(text)
    if drawn:
        return int(drawn[1]), int(drawn[2])
    if modulo is None:
        return 0, 0
    base = int(modulo[1] or 0) + int(modulo[3] or 0)
    return base, base + int(modulo[2]) - 1
