"""Catalogue: all signatures in the order in which they are tried, those of a site first."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from hpc_train.data_folders import data_file, site_folders
from hpc_train.errors import SignatureError, nearest
from hpc_train.model.regex_parts import literal_of
from hpc_train.model.value import Sourced, Value
from hpc_train.records.signatures.base import PACKAGED, Signature, SignatureEntry
from hpc_train.slurm_options import known_refusals
from hpc_train.timed_regex import TimedPattern
from hpc_train.typed_values import decode, load_data
from hpc_train.yamlfile import read

FOLDER = "signatures"
# In a pattern of the package: what sbatch says when it refuses a job.
_REFUSALS = "{refusals}"


class _Files(Value, frozen=True, kw_only=True):
    schema: Literal[1]
    files: tuple[str, ...]


class Catalogue:
    """Signatures in the order in which they are tried on a line, with their literals.

    `owners` maps a literal to the positions in `single` of the signatures that use it.
    """

    def __init__(self, signatures: Iterable[Signature]) -> None:
        self.signatures = tuple(signatures)
        self.by_id = {one.id: one for one in self.signatures}
        # The others are made of several lines.
        self.single = tuple(one for one in self.signatures if one.found_by is None)
        self.literals = frozenset(
            literal.encode() for one in self.signatures for literal in one.literals
        )
        self.owners: dict[bytes, list[int]] = defaultdict(list)
        for number, one in enumerate(self.single):
            for literal in one.literals:
                self.owners[literal.encode()].append(number)


def catalogue() -> Catalogue:
    """Return all signatures: `signatures/*.yaml` of each site folder, and the package's.

    Raises:
        SignatureError: a site's file is wrong, with file:line.
    """
    return _of(site_folders())


# The folders of a process stay the same; tests have several.
@lru_cache(maxsize=4)
def _of(folders: tuple[Path, ...]) -> Catalogue:
    own = {one.id: one for one in _own(folders)}
    return Catalogue((*own.values(), *(one for one in packaged() if one.id not in own)))


@cache
def packaged() -> tuple[Signature, ...]:
    """Return the signatures that come with the package."""
    names = load_data("signature_files.yaml", _Files).files
    paths = [data_file(FOLDER, f"{name}.yaml") for name in names]
    # The package's tests have checked them.
    return tuple(one for path in paths for one in read_signatures(path, PACKAGED)[1])


def _own(folders: Iterable[Path]) -> Iterator[Signature]:
    """Yield those of a site or user; of one id, that of the first folder."""
    composed = {one.id for one in packaged() if one.found_by is not None}
    known: dict[str, Signature] = {}
    for folder in dict.fromkeys(folders):
        here: dict[str, Signature] = {}
        for path in sorted((folder / FOLDER).glob("*.yaml")):
            for one in read_own(path):
                _check_id(one, composed, here.get(one.id))
                here[one.id] = one
        known = {**here, **known}
        yield from (one for name, one in here.items() if known[name] is one)


def _check_id(one: Signature, composed: set[str], other: Signature | None) -> None:
    place = f"{one.origin}: signatures.{one.id}"
    if one.id in composed:
        raise SignatureError(
            f"{place}: hpctrain makes this one of several lines; choose another id",
            "hpctrain diagnose --list names the ids",
        )
    if other is not None:
        raise SignatureError(f"{place}: the id stands at {other.origin}, too; choose another")


# Names that a title may contain although they are not groups of the pattern; see `explain`.
FILLED_IN = frozenset({"of_rank", "these_tasks", "rank", "node"})
# Groups that come from several lines: torchrun's report, a traceback.
_TAKEN = frozenset({"root", "file", "line", "caller"})
_ID = re.compile(r"[a-z][a-z0-9_]{2,79}")
_NAME = re.compile(r"\{(\w+)\}")
_LEAST = 4
_LONGEST = 2000


class SignatureFile(Value, frozen=True, kw_only=True):
    """The content of a file: id -> signature."""

    schema: Literal[1]
    signatures: Annotated[dict[str, SignatureEntry], Meta(min_length=1)]


def read_signatures(
    path: Path, origin: str = ""
) -> tuple[Sourced[SignatureFile], tuple[Signature, ...]]:
    """Return a file and its signatures, in order; their origin is its lines unless given.

    Raises:
        SignatureError: with file:line; the file is no YAML, or not of its type.
    """
    document = read(path, SignatureError)
    file = decode(document.data, SignatureFile, document.origins, SignatureError)
    return file, tuple(
        _signature(name, entry, origin or file.near(f"signatures.{name}"))
        for name, entry in file.value.signatures.items()
    )


def read_own(path: Path) -> Iterator[Signature]:
    """Yield the signatures of a file of a site or user, in order.

    Raises:
        SignatureError: with file:line; unknown keys, a pattern that is no regex, no literal of 4
        characters, an example that is not matched, a title that names what the pattern does not
        find.
    """
    file, signatures = read_signatures(path)
    for signature in signatures:
        check(signature, file)
        _check_own(signature, file)
        yield signature


def _signature(name: str, entry: SignatureEntry, origin: str) -> Signature:
    stated = {key: getattr(entry, key) for key in entry.__struct_fields__}
    pattern = entry.pattern if isinstance(entry.pattern, str) else "".join(entry.pattern)
    if origin == PACKAGED and _REFUSALS in pattern:
        pattern = pattern.replace(_REFUSALS, "|".join(map(re.escape, known_refusals())))
    literals = entry.literals or tuple(filter(None, [literal_of(pattern)]))
    return Signature(**{**stated, "pattern": pattern, "literals": literals}, id=name, origin=origin)


def check(signature: Signature, file: Sourced[SignatureFile]) -> None:
    """Check the rules that the types do not express.

    Raises:
        SignatureError: with file:line.
    """
    if not _ID.fullmatch(signature.id):
        place = file.near(f"signatures.{signature.id}")
        raise SignatureError(
            f"{place}: the id {signature.id!r} must be 3 to 80 lower-case letters, digits and _"
        )
    groups = _check_pattern(signature, file)
    _check_literals(signature, file)
    _check_example(signature, file)
    for key in ("title", "cause", "advice"):
        for name in _NAME.findall(getattr(signature, key)):
            if name not in groups and name not in FILLED_IN:
                known = ", ".join(sorted({*groups, *FILLED_IN}))
                text = f"{{{name}}} is no group of the pattern{nearest(name, groups)}"
                raise _error(signature, file, key, f"{text}; known: {known}")


def _check_own(signature: Signature, file: Sourced[SignatureFile]) -> None:
    """Refuse features that only signatures of the package may use."""
    if taken := sorted(_TAKEN.intersection(signature.compiled.groupindex)):
        text = f"the group {taken[0]!r} is filled from tracebacks; call it something else"
        raise _error(signature, file, "pattern", text)
    if signature.found_by is not None:
        text = "only hpctrain's own code makes a signature of several lines; leave this key out"
        raise _error(signature, file, "found_by", text)


def _check_pattern(signature: Signature, file: Sourced[SignatureFile]) -> set[str]:
    """Return the named groups of the pattern."""
    if len(signature.pattern) > _LONGEST:
        raise _error(signature, file, "pattern", f"is longer than {_LONGEST} characters")
    try:
        groups = set(TimedPattern(signature.pattern).groupindex)
    except (re.error, OverflowError, RecursionError) as error:
        raise _error(signature, file, "pattern", f"the regex cannot be read: {error}") from None
    return groups


def _check_literals(signature: Signature, file: Sourced[SignatureFile]) -> None:
    if not signature.literals or min(len(one.encode()) for one in signature.literals) < _LEAST:
        raise _error(
            signature,
            file,
            "pattern",
            f"the regex has no text of {_LEAST} characters or more that every match holds",
            "logs are searched for it first; name it: literals: ['quota daemon']",
        )
    for number, literal in enumerate(signature.literals):
        if set(literal) & set("\r\n"):
            raise _error(signature, file, f"literals.{number}", "must stand on one line")


def _check_example(signature: Signature, file: Sourced[SignatureFile]) -> None:
    if signature.found_by is not None:
        return
    lines = signature.example.splitlines()
    held = [line for line in lines if any(literal in line for literal in signature.literals)]
    if not held:
        shown = ", ".join(map(repr, signature.literals))
        raise _error(signature, file, "example", f"holds none of the literals {shown}")
    if not any(map(signature.search, held)):
        raise _error(signature, file, "example", f"the pattern does not match {held[0]!r}")


def _error(
    signature: Signature, file: Sourced[SignatureFile], key: str, text: str, hint: str = ""
) -> SignatureError:
    path = f"signatures.{signature.id}.{key}"
    return SignatureError(f"{file.near(path)}: {path}: {text}", hint)
