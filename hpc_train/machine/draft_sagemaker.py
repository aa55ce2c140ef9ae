"""Answers of an account of AWS -> the draft of a profile that loads and renders a job."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from hpc_train.machine.draft_profile import GUESSED, heading, line, question, remark, text
from hpc_train.machine.init_site import Drafted, InitOptions, check_draft, target_of, write_draft
from hpc_train.sagemaker.account_check import read_account
from hpc_train.sagemaker.live_account import InstanceType, LiveAccount

# With the quota of a new account, if the quotas cannot be read.
_ANY_TYPE = InstanceType(name="ml.g5.xlarge", most=1)
_MOST_SHOWN = 5


def draft_sagemaker(name: str, date: str, account: LiveAccount) -> str:
    """Return the text of the profile; unknown values are questions."""
    parts = (_head(name, date, account), _section(account), _launchers(), _partitions(account))
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _head(name: str, date: str, account: LiveAccount) -> Iterator[str]:
    where = f"Training jobs of SageMaker in {account.region}"
    source = f"the calls of AWS in {account.region}"
    yield from heading(name, date, where, "of which group?", source)
    yield line("scheduler", "sagemaker")


def _section(account: LiveAccount) -> Iterator[str]:
    yield "sagemaker:"
    yield line("region", account.region, depth=1)
    yield from _role(account)
    yield from _bucket(account)
    if account.image:
        yield line("image", account.image, f"{GUESSED}: that of the last training job", 1)
    else:
        example = f"ACCOUNT.dkr.ecr.{account.region}.amazonaws.com/NAME:TAG"
        yield question("image", example, "that of jobs without `container`?", 1)


def _role(account: LiveAccount) -> Iterator[str]:
    roles = account.roles
    if not roles:
        role = f"arn:aws:iam::{account.account}:role/NAME"
        yield line("role", role, "no role was found that SageMaker may assume: which one?", 1)
        return
    yield line("role", roles[0], "" if len(roles) == 1 else f"{GUESSED}: one of {len(roles)}", 1)
    yield from (remark(f"role: {role}", 1) for role in roles[1:_MOST_SHOWN])


def _bucket(account: LiveAccount) -> Iterator[str]:
    chosen = account.buckets[0] if account.own_bucket in account.buckets else account.own_bucket
    note = "" if chosen in account.buckets else f"{GUESSED}: aws s3 mb s3://{chosen} makes it"
    yield line("bucket", f"s3://{chosen}/hpctrain", note, 1)
    others = [name for name in account.buckets if name != chosen]
    yield from (remark(f"bucket: s3://{name}/hpctrain", 1) for name in others[:_MOST_SHOWN])


def _launchers() -> Iterator[str]:
    yield "launchers:"
    yield line("default", "torchrun", depth=1)
    yield line("allowed", ("torchrun", "spawn", "single"), depth=1)


def _partitions(account: LiveAccount) -> Iterator[str]:
    """Yield the types that the account may use, those with GPUs first."""
    if account.types:
        yield remark("instance types with a quota for training jobs; max_nodes is the quota")
    types = account.types or (_ANY_TYPE,)
    yield "partitions:"
    for number, one in enumerate(sorted(types, key=_order)):
        words = ["default: true"] if number == 0 else []
        yield f"  - {{{', '.join([f'name: {one.name}', *words, *_sizes(one)])}}}{_note(one)}"
    yield question("report", "{currency: USD}", "with price_per_node_hour of each, the currency?")


def _order(one: InstanceType) -> tuple[bool, int, int, str]:
    gpus = one.gpus or 0
    return (gpus == 0, gpus, one.cpus or 0, one.name)


def _sizes(one: InstanceType) -> Iterator[str]:
    if one.cpus:
        yield f"cpus_per_node: {one.cpus}"
    if one.gpus is not None:
        yield f"gpus_per_node: {one.gpus}"
    if one.gpu_model:
        yield f"gpu_model: {text(one.gpu_model)}"
    if one.memory_mib:
        yield f"mem_per_node: {one.memory_mib}M"
    yield f"max_nodes: {one.most}"


def _note(one: InstanceType) -> str:
    if one is _ANY_TYPE:
        return f"  # {GUESSED}: which types, with which quota?"
    return "" if one.cpus else "  # cores and GPUs?"


def init_sagemaker(options: InitOptions) -> Drafted:
    """Ask AWS, and write the draft atomically.

    Raises:
        HpcTrainError: no region or credentials, no answer, or a file that cannot be written.
    """
    given = options.name or (options.output.stem if options.output else None)
    if given is not None:
        # Errors in the options are reported before AWS is asked.
        target_of(options, given)
    account = read_account()
    name = given or f"aws-{account.region}"
    target = target_of(options, name)
    text = draft_sagemaker(name, datetime.date.today().isoformat(), account)
    check_draft(name, text, f"the answers of AWS for the account {account.account}")
    write_draft(target, text, options)
    return Drafted(path=target, name=name, text=text, unread=account.unread)
