"""Validation of a job's variables and secrets beyond their types."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.errors import SpecError
from hpc_train.model.job import SourcedJob
from hpc_train.model.variable_names_and_secrets import (
    ENV,
    KEPT,
    is_reserved,
    is_variable,
    looks_secret,
    named_by_job,
    secret_in,
    why_not_empty,
)

# MAX_ARG_STRLEN of Linux: one argument, or one variable with its name.
_LONGEST = 128 * 1024 - 256


def check_variables(job: SourcedJob) -> None:
    """Refuse invalid names, variables that the script sets itself, and plain-text secrets.

    Raises:
        SpecError: with file:line; the message does not contain the secret.
    """
    _check_env(job)
    _check_secrets(job)
    _check_texts(job)


def _check_env(job: SourcedJob) -> None:
    passed = job.value.container.env if job.value.container else ()
    for key, names in (("env", tuple(job.value.env)), ("container.env", passed)):
        for name in names:
            place = job.near(f"{key}.{name}")
            if not is_variable(name):
                raise SpecError(f"{place}: {name!r} is not a name of an environment variable")
            if looks_secret(name, job.value.env.get(name) if key == "env" else None):
                raise SpecError(
                    f"{place}: {key}.{name} looks like a secret, {KEPT}", named_by_job(name)
                )
    for key, names in (("env", tuple(job.value.env)), ("secrets", tuple(job.value.secrets))):
        for name in filter(is_reserved, names):
            place = job.near(f"{key}.{name}")
            raise SpecError(f"{place}: {key}.{name}: the script or bash sets {name} itself")
    for name, value in job.value.env.items():
        if value == "" and why_not_empty(name):
            place = job.near(f"env.{name}")
            raise SpecError(f"{place}: env.{name} is empty: {why_not_empty(name)}")


def _check_secrets(job: SourcedJob) -> None:
    for name, where in job.value.secrets.items():
        place = job.near(f"secrets.{name}")
        if not is_variable(name):
            raise SpecError(f"{place}: {name!r} is not a name of an environment variable")
        if name in job.value.env:
            raise SpecError(f"{place}: {name} is also in env, so its value would be written")
        if where != ENV and "/" not in where:
            # It may be the secret itself, so it is not repeated.
            raise SpecError(
                f"{place}: secrets.{name} is neither `env` nor the path of a file (with a /)",
                f"export {name} in the shell you submit from and write `{name}: env`, or put it "
                f"into a file of mode 0600 and write its path, e.g. ~/.{name.lower()}",
            )


def _check_texts(job: SourcedJob) -> None:
    for key, text in _texts(job):
        if key != "command" and len(text.encode()) >= _LONGEST:
            raise SpecError(
                f"{job.near(key)}: {key} has {len(text.encode())} bytes; Linux passes on fewer "
                f"than {_LONGEST} in one text",
                "write it into a file that the program reads",
            )
        found = secret_in(key, text)
        if found:
            message, name = found
            hint = f"{named_by_job(name)}; programs and setup lines read ${name}"
            raise SpecError(f"{job.near(key)}: {message}", hint)


def _texts(job: SourcedJob) -> Iterator[tuple[str, str]]:
    """Yield all texts that are written unchanged, with their keys."""
    spec = job.value
    for name, value in spec.env.items():
        yield f"env.{name}", str(value)
    for key in ("command", "launcher_args", "setup"):
        for number, text in enumerate(getattr(spec, key)):
            yield f"{key}.{number}", text
    yield "comment", spec.comment or ""
    yield "container.image", spec.container.image if spec.container else ""
    # A flag and its value may be two items.
    yield "command", " ".join(spec.command)
