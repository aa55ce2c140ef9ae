"""The values that sbatch and srun accept for an option, and the error of a refused value."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import cache
from typing import Literal

from hpc_train.lint.placeholders import is_placeholder
from hpc_train.model.value import Value
from hpc_train.typed_values import load_data

_RANGE = re.compile(r"(?<![\w:%+-])(\d{1,9})-(\d{1,9})(?!\w)")
_TOKEN = re.compile(r"[\w-]+")
_OPENING = ("$", "`", "<", "{", "__")
_LONGEST = 500


class ValueForm(Value, frozen=True, kw_only=True):
    """The accepted text of some options; see the comments of `slurm_values.yaml`."""

    options: tuple[str, ...]
    form: str
    allowed: str
    words: tuple[str, ...] = ()
    part: bool = False
    ascending: bool = False
    open: bool = False

    @property
    def compiled(self) -> re.Pattern[str]:
        """The pattern of the whole text of an accepted value, or of a part of it."""
        return _compiled(self.form)


class _File(Value, frozen=True, kw_only=True):
    schema: Literal[1]
    forms: tuple[ValueForm, ...]
    srun: tuple[ValueForm, ...]


class RefusedValue(Value, frozen=True, kw_only=True):
    """What sbatch does not accept in a value, what it accepts, and the nearest word.

    If `ignored`, sbatch accepts the value without this part.
    """

    part: str
    allowed: str
    nearest: str = ""
    ignored: bool = False


@cache
def value_forms() -> dict[str, ValueForm]:
    """Return the forms of sbatch by the names of their options."""
    return _by_option(load_data("slurm_values.yaml", _File).forms)


@cache
def srun_value_forms() -> dict[str, ValueForm]:
    """Return the forms of srun by the names of their options."""
    return value_forms() | _by_option(load_data("slurm_values.yaml", _File).srun)


def _by_option(forms: tuple[ValueForm, ...]) -> dict[str, ValueForm]:
    return {option: form for form in forms for option in form.options}


def is_unknown(value: str) -> bool:
    """Return whether a value is filled in later, by a template or by hand."""
    return any(mark in value for mark in _OPENING) or is_placeholder(value)


def refused_value(
    option: str, value: str, forms: Mapping[str, ValueForm] | None = None
) -> RefusedValue | None:
    """Return the error of an option's value; None if it is accepted or unknown.

    `forms` are those of sbatch unless others are given.
    """
    form = (value_forms() if forms is None else forms).get(option)
    if form is None or len(value) > _LONGEST or is_unknown(value):
        return None
    if form.part:
        return _refused_part(form, value)
    if not _matches(form, value):
        refused = _refused(form, value)
        return refused if refused.nearest or not form.open else None
    if form.ascending and any(int(low) > int(high) for low, high in _RANGE.findall(value)):
        return _refused(form, value)
    return None


def _refused_part(form: ValueForm, value: str) -> RefusedValue | None:
    parts = [part for part in value.split(",") if part]
    wrong = [part for part in parts if not _matches(form, part)]
    if parts and not wrong:
        return None
    return _refused(form, wrong[0] if wrong else value, ignored=len(wrong) < len(parts))


def _refused(form: ValueForm, part: str, *, ignored: bool = False) -> RefusedValue:
    return RefusedValue(
        part=part, allowed=form.allowed, nearest=_nearest(form, part), ignored=ignored
    )


def _nearest(form: ValueForm, value: str) -> str:
    """Return the word that is most like one in the value that is none of the form's."""
    known = {word.lower(): word for word in form.words}
    bare = {word.rstrip(":=,"): word for word in known}
    for token in _TOKEN.findall(value):
        lower = token.lower()
        if lower in known:
            # Some options need capital letters.
            if _matches(form, known[lower]) and not _matches(form, token):
                return known[lower]
            continue
        near = difflib.get_close_matches(lower, list(bare), n=1, cutoff=0.6)
        if near:
            return known[bare[near[0]]]
    return ""


def _matches(form: ValueForm, text: str) -> bool:
    return form.compiled.fullmatch(text) is not None


@cache
def _compiled(form: str) -> re.Pattern[str]:
    return re.compile(rf"\A(?:{form})\Z", re.IGNORECASE | re.VERBOSE)
