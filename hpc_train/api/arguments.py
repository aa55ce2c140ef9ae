"""Arguments of the Python interface: the keys of a job as keywords, and checks of types."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict, get_args

import msgspec

from hpc_train.base.errors import ArgumentError
from hpc_train.jobs.override import Override
from hpc_train.runs.json_files import default_results
from hpc_train.scripts.prepare import Request


class JobKeys(TypedDict, total=False):
    """Keys of a job file and of its `resources`; docs/files.md has their meaning."""

    name: str
    command: Sequence[str]
    launcher: str | None
    launcher_args: Sequence[str]
    elastic: Mapping[str, Any]
    container: Mapping[str, Any]
    torch: str
    backend: str
    mpi: bool
    nodes: int | None
    tasks_per_node: int | None
    gpus_per_node: int | str | None
    gpu_type: str | None
    cpus_per_task: int | None
    mem: str | None
    time: str | None
    exclusive: bool | None
    account: str | None
    partition: str | None
    qos: str | None
    constraint: str | None
    directives: Mapping[str, str | int | bool]
    env: Mapping[str, str | int | float]
    modules: Sequence[str]
    comment: str | None
    secrets: Mapping[str, str]
    setup: Sequence[str]
    signal_before_end: str | None
    trainer: Mapping[str, Any] | None
    lifecycle: Mapping[str, Any] | None
    workdir: str | None


def keyword_request(
    path: Path,
    arguments: Sequence[str],
    site: str | None,
    keys: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> Request:
    """Return the request of `submit(path, arguments, site=…, KEY=VALUE…, settings={…})`.

    Values are those of a YAML file; None leaves a key out. `settings` override the `keys`, as
    `--set` overrides the other options.

    Raises:
        ArgumentError: a value that a job file cannot contain.
    """
    overrides = [_override(key, value, f"{key}=") for key, value in keys.items()]
    overrides += [_override(key, value, f"settings[{key!r}]") for key, value in settings.items()]
    given = tuple(override for override in overrides if override.value is not None)
    return Request(path=path, arguments=tuple(arguments), site=site, overrides=given)


def _override(key: str, value: Any, origin: str) -> Override:
    return Override(key=key, value=_plain(value, origin), origin=origin)


def _plain(value: Any, origin: str) -> Any:
    """Return a value as YAML would have read it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(inner, origin) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, origin) for inner in value]
    if hasattr(value, "__index__"):
        # An integer of numpy or pandas.
        return value.__index__()
    raise ArgumentError(
        f"{origin}: {type(value).__name__} is not a value of a job file",
        "use a number, text, a list or a dict",
    )


AnyPath = str | os.PathLike[str]


def path_of(value: object, name: str) -> Path:
    """Return a path that was given as text or as a path.

    Raises:
        ArgumentError: another type, or an empty text.
    """
    return Path(text_of(value, name))


def text_of(value: object, name: str) -> str:
    """Return a name or path as text.

    Raises:
        ArgumentError: another type, or an empty text.
    """
    text: str = checked(os.fspath(value) if isinstance(value, os.PathLike) else value, Name, name)
    return text


def texts_of(values: object, name: str) -> list[str]:
    """Return one or several names or paths as texts.

    Raises:
        ArgumentError: another type, or none.
    """
    if isinstance(values, (str, bytes, os.PathLike)) or not isinstance(values, Iterable):
        return [text_of(values, name)]
    found = [text_of(value, f"{name}[{index}]") for index, value in enumerate(values)]
    if not found:
        raise ArgumentError(f"{name}: the list is empty", "name at least one")
    return found


def words_of(values: Iterable[object], name: str) -> tuple[str, ...]:
    """Return the arguments of a program; numbers are written as Python writes them.

    Raises:
        ArgumentError: one text instead of a list, or another type.
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ArgumentError(
            f"{name}: must be a list with one item for each word", f'{name}=["--epochs", 3]'
        )
    words = [os.fspath(one) if isinstance(one, os.PathLike) else one for one in values]
    return tuple(
        str(checked(word, str | int | float, f"{name}[{n}]")) for n, word in enumerate(words)
    )


def results_of(results: AnyPath | None) -> Path:
    """Return the absolute folder of all results; by default $HPCTRAIN_RESULTS or ./results."""
    folder = default_results() if results is None else path_of(results, "results")
    # The interpreter may change its folder before the next call.
    return folder.absolute()


Number = Annotated[float, msgspec.Meta(ge=0, le=1e308)]
Name = Annotated[str, msgspec.Meta(min_length=1, pattern=r"\A[^\0]*\Z")]


def checked(value: Any, kind: Any, name: str) -> Any:
    """Return the value of an argument.

    Raises:
        ArgumentError: it is not of this kind.
    """
    try:
        # A number of numpy is one of Python.
        value = value.item() if getattr(value, "ndim", None) == 0 else value
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as failure:
        allowed = [repr(word) for one in get_args(kind) for word in get_args(one)]
        said = f"must be {' or '.join(allowed)}" if "enum" in str(failure) else f"{failure}"
        said = said.replace("`object", "`dict").replace("null`", "None`")
        raise ArgumentError(f"{name}: {said}: {value!r:.60}") from None
