"""The keys that a site requires and a job lacks: all of them in one message."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hpc_train.base.errors import PlanError
from hpc_train.plans.context import Context, asked_at, show, with_key
from hpc_train.sites.partition import ANY, Select
from hpc_train.sites.profile import sample_account


class MissingKey(NamedTuple):
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
    whole = f"a whole job file: {show(context.site)} --job"
    # An option has the place of other keys, not of those that are missing.
    place = asked_at(context.job, missing[0].key)
    place = "" if place.startswith("--") else place
    if len(missing) == 1:
        one, name = missing[0], missing[0].key.removeprefix("resources.")
        where = "'s resources" if name != one.key else ""
        line = _or_file(f"add `{name}: {one.example}` to the job{where}", context)
        raise PlanError(
            f"{place}{site} needs {one.why}", f"{line}{one.option}{_yours(one)}; {whole}"
        )
    lines = [f"{one.key}: {one.example}" for one in missing]
    width = max(map(len, lines))
    rows = (
        f"    {line:{width}}  # {one.why}{_yours(one)}"
        for line, one in zip(lines, missing, strict=True)
    )
    options = " ".join(one.option for one in missing)
    raise PlanError(
        "\n".join((f"{place}{site} needs {len(missing)} more keys:", *rows)),
        f"{_or_file('add them to the job', context)}{options}; {whole}",
    )


def missing_keys(context: Context) -> tuple[MissingKey, ...]:
    """Return the keys that the job lacks; if it names no partition, those on the example's."""
    if not context.batch.prefix:
        return ()
    there, partitions = context, context.site.value.partitions
    if partitions and not context.queue.partition:
        # The partition that a message names first.
        named_ones = [one.name for one in partitions if one.name != ANY]
        there = with_key(context, "partition", (named_ones or [ANY])[0])
    found = [*_partition(context), *_others(there, context)]
    named = context.queue.partition is not None or context.job.value.partition is not None
    # A job that names no partition may get any.
    possible = (context.partition,) if named else context.site.value.partitions
    gpus = _gpus(there) if found or all(one.gpus_per_node for one in possible) else None
    return (*found, gpus) if gpus else tuple(found)


def _partition(context: Context) -> Iterator[MissingKey]:
    profile, job = context.site.value, context.job.value
    names = [one.name for one in profile.partitions if one.name != ANY]
    asked = profile.partition_choice == "job"
    default = context.queue.partition is not None and context.partition.name != ANY
    required = "partition" in profile.required and not default
    if job.partition is not None or not (asked or required):
        return
    if not asked:
        yield from _required(context, "partition", names[0] if names else "NAME", names)
        return
    others = len(names) < len(profile.partitions) or not names
    own = "your cluster's own name for one (see sinfo)"
    allowed = ", ".join([*names, *([f"or {own}" if names else own] if others else [])])
    place = context.site.near("partition_choice")
    why = f"a partition: there is no default ({place}); allowed: {allowed}"
    yield MissingKey("partition", names[0] if names else "NAME", why)


def _others(there: Context, context: Context) -> Iterator[MissingKey]:
    """Yield the other keys that jobs need on the partition `there`."""
    profile, job, account = there.site.value, there.job.value, there.site.value.account
    select = there.partition.select or Select()
    if job.account is None and (account.required or "account" in profile.required):
        rule = "account.required" if account.required else _rule(there, "account")
        like = f", such as {account.example}" if account.example else ""
        like = like or (f" of the form {account.pattern}" if account.pattern else "")
        example = sample_account(account) if account.example or account.pattern else "NAME"
        why = f"an account{like} ({there.site.near(rule)})"
        yield MissingKey("account", example, why, account.command or "")
    # Whether these are missing depends on the partition that the job will fit.
    chosen = context.queue.partition is not None or profile.partition_choice != "fitting"
    if chosen and not (job.qos or select.qos):
        names = [one.name for one in profile.qos if one.name != ANY]
        yield from _required(there, "qos", names[0] if names else "NAME", names)
    if chosen and not (job.constraint or select.constraint):
        yield from _required(there, "constraint", "NAME")
    if job.resources.time is None:
        yield from _required(there, "time", "1h", key="resources.time")
    if chosen and job.resources.mem is None and profile.mem_request not in ("zero", "forbidden"):
        yield from _memory(there)


def _memory(context: Context) -> Iterator[MissingKey]:
    """The share of the GPUs may stand for the request."""
    profile, partition = context.site.value, context.partition
    shared = bool(partition.mem_per_gpu and context.job.value.resources.gpus_per_node)
    if profile.mem_request == "required" and not shared:
        why = f"to know the memory of a node ({context.site.near('mem_request')})"
        yield MissingKey("resources.mem", str(partition.mem_per_node or "100G"), why)
    elif not (profile.mem_request == "per-gpu" and shared):
        yield from _required(context, "mem", "100G", key="resources.mem")


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
    return MissingKey("resources.gpus_per_node", str(min(there, most)), why)


def _required(
    context: Context, word: str, example: str, names: Sequence[str] = (), *, key: str = ""
) -> Iterator[MissingKey]:
    """Yield the key if `required` of the profile lists it."""
    if word in context.site.value.required:
        known = f"; known: {', '.join(names)}" if names else ""
        why = f"a {word} ({context.site.near(_rule(context, word))}){known}"
        yield MissingKey(key or word, example, why)


def _rule(context: Context, word: str) -> str:
    words: Sequence[str] = context.site.value.required
    return f"required.{words.index(word)}"


def _or_file(advice: str, context: Context) -> str:
    """Return the advice for the job's file, if it has one."""
    return "" if context.job.origin("command") == "command line" else f"{advice}, or "


def _yours(missing: MissingKey) -> str:
    return f"; yours: {missing.command}" if missing.command else ""
