"""The keys that a site requires and a job lacks: all of them in one message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpc_train.base.errors import PlanError
from hpc_train.base.value import Value
from hpc_train.plans.context import Context, asked_at, on_partition
from hpc_train.sites.partition import ANY
from hpc_train.sites.profile import sample_account


class MissingKey(Value, frozen=True, kw_only=True):
    """A key of the job, an example of its value, why the site needs it, what prints values."""

    key: str
    example: str
    why: str
    command: str = ""

    @property
    def option(self) -> str:
        """Return the option that sets it."""
        return f"--{self.key.removeprefix('resources.').replace('_', '-')} {self.example}"


def check_missing(context: Context) -> None:
    """Refuse a job without the keys that its site requires.

    Raises:
        PlanError: with each of them, an example of its value, and the command that prints a job.
    """
    missing = missing_keys(context)
    if not missing:
        return
    site = context.site.value.name
    # An option has the place of other keys, not of those that are missing.
    place = asked_at(context.job, missing[0].key)
    place = "" if place.startswith("--") else place
    if len(missing) == 1:
        raise PlanError(f"{place}{site} needs {missing[0].why}", _add(missing[0], context))
    lines = [f"{one.key}: {one.example}" for one in missing]
    width = max(map(len, lines))
    rows = (
        f"    {line:{width}}  # {one.why}{_yours(one)}"
        for line, one in zip(lines, missing, strict=True)
    )
    raise PlanError(
        "\n".join((f"{place}{site} needs {len(missing)} more keys:", *rows)),
        f"{_or_file('add them to the job', context)}{' '.join(one.option for one in missing)}; "
        f"a whole job file: hpctrain site show {site} --job",
    )


def missing_keys(context: Context) -> tuple[MissingKey, ...]:
    """Return the keys that the job lacks; if it names no partition, those on the example's."""
    if not context.batch.prefix:
        return ()
    asked = [*_partition(context)]
    there = _on_example(context)
    # Whether the others are missing depends on the partition that the job will fit.
    open_choice = context.queue.partition is None and there.site.value.partition_choice == "fitting"
    rules = (_account, _time) if open_choice else (_account, _qos, _constraint, _time, _memory)
    found = [*asked, *(one for one in (rule(there) for rule in rules) if one)]
    gpus = _gpus(there) if found or _has_gpus(context) else None
    return (*found, gpus) if gpus else tuple(found)


def _on_example(context: Context) -> Context:
    """Return the job on the partition that a message names first."""
    partitions = context.site.value.partitions
    if context.queue.partition or not partitions:
        return context
    named = [one.name for one in partitions if one.name != ANY]
    return on_partition(context, (named or [ANY])[0], "")


def _partition(context: Context) -> Iterator[MissingKey]:
    profile, job = context.site.value, context.job.value
    names = [one.name for one in profile.partitions if one.name != ANY]
    asked = profile.partition_choice == "job"
    default = context.queue.partition is not None and context.partition.name != ANY
    required = "partition" in profile.required and not default
    if job.partition is not None or not (asked or required):
        return
    if not asked:
        found = _required(context, "partition", names[0] if names else "NAME", names)
        yield from (found,) if found else ()
        return
    others = len(names) < len(profile.partitions) or not names
    own = "your cluster's own name for one (see sinfo)"
    allowed = ", ".join([*names, *([f"or {own}" if names else own] if others else [])])
    place = context.site.near("partition_choice")
    why = f"a partition: there is no default ({place}); allowed: {allowed}"
    yield MissingKey(key="partition", example=names[0] if names else "NAME", why=why)


def _account(context: Context) -> MissingKey | None:
    profile, account = context.site.value, context.site.value.account
    if not account.required and "account" not in profile.required:
        return None
    if context.job.value.account is not None:
        return None
    rule = "account.required" if account.required else _rule(context, "account")
    like = f", such as {account.example}" if account.example else ""
    like = like or (f" of the form {account.pattern}" if account.pattern else "")
    why = f"an account{like} ({context.site.near(rule)})"
    known = account.example or account.pattern
    example = sample_account(account) if known else "NAME"
    return MissingKey(key="account", example=example, why=why, command=account.command or "")


def _qos(context: Context) -> MissingKey | None:
    select = context.partition.select
    if context.job.value.qos or (select and select.qos):
        return None
    names = [one.name for one in context.site.value.qos if one.name != ANY]
    return _required(context, "qos", names[0] if names else "NAME", names)


def _constraint(context: Context) -> MissingKey | None:
    select = context.partition.select
    if context.job.value.constraint or (select and select.constraint):
        return None
    return _required(context, "constraint", "NAME")


def _time(context: Context) -> MissingKey | None:
    if context.job.value.resources.time is not None:
        return None
    return _required(context, "time", "1h", key="resources.time")


def _memory(context: Context) -> MissingKey | None:
    """The share of the GPUs may stand for the request."""
    profile, partition, job = context.site.value, context.partition, context.job.value
    if job.resources.mem is not None or profile.mem_request in ("zero", "forbidden"):
        return None
    shared = partition.mem_per_gpu is not None and job.resources.gpus_per_node
    if profile.mem_request == "required" and not shared:
        place = context.site.near("mem_request")
        size = str(partition.mem_per_node or "100G")
        why = f"to know the memory of a node ({place})"
        return MissingKey(key="resources.mem", example=size, why=why)
    if profile.mem_request == "per-gpu" and shared:
        return None
    return _required(context, "mem", "100G", key="resources.mem")


def _has_gpus(context: Context) -> bool:
    """Whether the nodes of the job have GPUs, if its partition is known or all partitions have."""
    profile = context.site.value
    if context.queue.partition is not None or context.job.value.partition is not None:
        return bool(context.partition.gpus_per_node)
    return all(one.gpus_per_node for one in profile.partitions)


def _gpus(context: Context) -> MissingKey | None:
    """A job without GPUs on nodes that have some is rarely meant, so that 0 must be written.

    A default would request, and charge, GPUs that the user did not ask for.
    """
    partition, resources = context.partition, context.job.value.resources
    there = partition.gpus_per_node
    if not there or resources.gpus_per_node is not None:
        return None
    if context.site.value.gpu_request == "none":
        return None
    most = max(1, (partition.max_gpus or there * resources.nodes) // resources.nodes)
    why = f"the GPUs of each node: there are {there}; 0 for a job without GPUs"
    return MissingKey(key="resources.gpus_per_node", example=str(min(there, most)), why=why)


def _required(
    context: Context, word: str, example: str, names: Sequence[str] = (), *, key: str = ""
) -> MissingKey | None:
    """Return the key if `required` of the profile lists it."""
    if word not in context.site.value.required:
        return None
    known = f"; known: {', '.join(names)}" if names else ""
    why = f"a {word} ({context.site.near(_rule(context, word))}){known}"
    return MissingKey(key=key or word, example=example, why=why)


def _rule(context: Context, word: str) -> str:
    words: Sequence[str] = context.site.value.required
    return f"required.{words.index(word)}"


def _add(missing: MissingKey, context: Context) -> str:
    name = missing.key.removeprefix("resources.")
    where = "'s resources" if name != missing.key else ""
    line = _or_file(f"add `{name}: {missing.example}` to the job{where}", context)
    return (
        f"{line}{missing.option}{_yours(missing)}; "
        f"a whole job file: hpctrain site show {context.site.value.name} --job"
    )


def _or_file(advice: str, context: Context) -> str:
    """Return the advice for the job's file, if it has one."""
    return "" if context.job.origin("command") == "command line" else f"{advice}, or "


def _yours(missing: MissingKey) -> str:
    return f"; yours: {missing.command}" if missing.command else ""
