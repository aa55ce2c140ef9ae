"""Overrides: `--set KEY=VALUE` and other options of the command line."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from hpc_train.base.decode import keys_of
from hpc_train.base.errors import SpecError, nearest
from hpc_train.base.values import Value
from hpc_train.base.yamlfile import value_of
from hpc_train.jobs.job import Container, Elastic, JobLifecycle, JobSpec, Resources, TrainerOptions
from hpc_train.jobs.study import SIZE_AXES

_INNER: dict[str, type[Value]] = {
    "resources": Resources,
    "elastic": Elastic,
    "container": Container,
    "trainer": TrainerOptions,
    "lifecycle": JobLifecycle,
}
# The values of these options are text, even if they look like a number.
_TEXTS = ("name", "launcher", "partition", "account", "qos", "constraint")

_SIZES = re.compile(r"\d{1,6}(?: ?, ?\d{1,6})+,?")
# Options of sbatch with the number of all nodes -> the key of a node.
_OF_ALL_NODES = {"ntasks": "tasks_per_node", "gpus": "gpus_per_node"}


class Override(Value, frozen=True, kw_only=True):
    """One value given on the command line; `origin` is the option as it was typed.

    `text` is the value as it was typed, where it is known. A number `of_all_nodes` is divided by
    the nodes of the job.
    """

    key: str
    value: Any
    origin: str
    text: str = ""
    of_all_nodes: bool = False


def parse_setting(text: str) -> Override:
    """Read `resources.nodes=2`; the value is YAML, so lists are `[1, 2]`.

    Raises:
        SpecError: no `=`, an empty key, or a value that is not YAML.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise SpecError(f"--set {text}: write KEY=VALUE, for example --set resources.nodes=2")
    origin = f"--set {key.strip()}"
    read = value_of(value, origin, SpecError, key.strip())
    return Override(key=key.strip(), value=read, origin=origin, text=value)


def option_override(key: str, text: str, option: str = "") -> Override:
    """Return the override of an option that sets a key: `--tasks-per-node 4`.

    `option` is the name of the option, if it is not that of the key.

    Raises:
        SpecError: a value that is not YAML.
    """
    option = option or f"--{key.rpartition('.')[2].replace('_', '-')}"
    is_text = key in _TEXTS or key.startswith("directives.")
    value = text if is_text else value_of(text, option, SpecError)
    own = _OF_ALL_NODES.get(key, key)
    return Override(key=own, value=value, origin=option, of_all_nodes=own != key)


def has_sizes(override: Override) -> bool:
    """Whether an option has several sizes: `--nodes 1,2,4`."""
    is_size = override.key in SIZE_AXES and override.origin.startswith("--")
    return is_size and bool(_SIZES.fullmatch(str(override.value)))


def full_key(key: str) -> str:
    """Return the job's dotted key for a key or its short form (`nodes` -> `resources.nodes`)."""
    head = key.partition(".")[0]
    if head not in keys_of(JobSpec) and head in keys_of(Resources):
        return f"resources.{key}"
    if head not in keys_of(JobSpec) and head in keys_of(TrainerOptions):
        return f"trainer.{key}"
    return key


def check_key(key: str, where: str) -> None:
    """Refuse an unknown key.

    Raises:
        SpecError: with the nearest key.
    """
    head, _, rest = full_key(key).partition(".")
    if key == "site":
        raise SpecError(
            f"{where}: site is not a key of a job",
            "--site NAME chooses one; hpctrain report A B compares the results of several",
        )
    inner = _INNER.get(head)
    known = keys_of(inner) if inner and rest else keys_of(JobSpec)
    # An item of a list has a number.
    name = re.sub(r"\.[0-9]+$", "", rest) if inner and rest else head
    if name not in known or (rest and not inner and head not in ("env", "command", "directives")):
        every = [*keys_of(JobSpec), *keys_of(Resources), *keys_of(TrainerOptions)]
        if inner and rest:
            every = [f"{head}.{name}" for name in known]
        raise SpecError(
            f"{where}: {key!r} is not a key of a job{nearest(key, every)}; "
            f"allowed: {', '.join(every)}{'' if inner else ', env.NAME'}",
            "hpctrain help files describes each key",
        )


def apply(data: dict[str, Any], origins: dict[str, str], overrides: Sequence[Override]) -> None:
    """Apply overrides to plain values, in order, recording their origin.

    Raises:
        SpecError: a part of a key is not a mapping, or an index is out of range.
    """
    for override in overrides:
        _put(data, override)
        stale = [path for path in origins if path.startswith(override.key + ".")]
        for path in stale:
            del origins[path]
        # What holds the key, if the override makes it: it may be no mapping.
        for end in (match.start() for match in re.finditer(r"\.", override.key)):
            origins.setdefault(override.key[:end], override.origin)
        origins.update(dict.fromkeys(key_paths(override.key, override.value), override.origin))


def key_paths(key: str, value: Any) -> Iterator[str]:
    """Yield a key and everything below it."""
    yield key
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from key_paths(f"{key}.{name}", inner)
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield from key_paths(f"{key}.{index}", inner)


def _put(data: dict[str, Any], override: Override) -> None:
    *parents, last = override.key.split(".")
    target: Any = data
    for parent in parents:
        target = target.setdefault(parent, {}) if isinstance(target, dict) else target
    if isinstance(target, list) and last.isdigit() and int(last) < len(target):
        # A word of a command is text, as it was typed: `--set command.3=0.10`.
        is_text = parents != ["command"] or isinstance(override.value, (str, dict, list))
        target[int(last)] = override.value if is_text else override.text or override.value
    elif isinstance(target, dict):
        target[last] = override.value
    else:
        raise SpecError(
            f"{override.origin}: {'.'.join(parents)} has no part {last}",
            "hpctrain explain FILE prints its value",
        )
