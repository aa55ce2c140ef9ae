"""Signature: a failure and the lines that identify it; Sighting: a line that matched one."""

import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, field

from hpc_train.base.data_folders import data_file, site_folders
from hpc_train.base.decode import decode, load_data
from hpc_train.base.errors import SignatureError, nearest
from hpc_train.base.regex import TimedPattern, literal_of
from hpc_train.base.slurm_options import known_refusals, named_options, refusal_of
from hpc_train.base.values import LogSeverity, Sourced, Value
from hpc_train.base.yamlfile import read

PACKAGED = "hpctrain"
"""`Signature.origin` of those that come with the package."""

SignatureGroup = Literal[
    "slurm",
    "mpi",
    "torchrun",
    "c10d",
    "nccl",
    "cuda",
    "gpu_hardware",
    "software",
    "filesystem",
    "container",
    "python",
    "site",
]
SignatureRole = Literal["cause", "consequence"]
SignatureKind = Literal["failure", "echo", "exit", "kill", "stop", "general"]
MemoryShortage = Literal["full", "fragmentation", "other_processes"]
Composed = Literal["traceback", "torchrun_report", "nccl_last_error", "nccl_tests"]
ShortText = Annotated[str, Meta(min_length=1, max_length=400)]
_log = logging.getLogger(__name__)


class Explanation(Value, frozen=True, kw_only=True):
    """What happened, why, and what to do; `{name}` is replaced by the value in the line."""

    title: ShortText
    cause: ShortText
    advice: ShortText


class _Codes(Value, frozen=True, kw_only=True):
    """How a process ended with one of some codes; `how` continues a sentence after its name.

    `crash`: a signal that is not sent to end a job.
    """

    how: str
    cause: str
    advice: str
    codes: tuple[str, ...] = ()
    crash: bool = False


class Failures(Value, frozen=True, kw_only=True):
    """The files of the package's signatures, and what no signature says.

    `conclusions`: what is concluded from many lines, by id; `other` is any other exit code.
    """

    schema: Literal[1]
    files: tuple[str, ...]
    conclusions: dict[str, Explanation]
    exit_codes: tuple[_Codes, ...]
    other: _Codes

    def ended(self, code: str) -> _Codes:
        """Return the meaning of an exit code."""
        return next((one for one in self.exit_codes if code in one.codes), self.other)


@cache
def failures() -> Failures:
    """Return those that come with the package."""
    return load_data("failures.yaml", Failures)


def concluded(name: str, **stated: object) -> Explanation:
    """Return a conclusion, filled with what is known."""
    one = failures().conclusions[name]
    return Explanation(
        title=one.title.format(**stated),
        cause=one.cause.format(**stated),
        advice=one.advice.format(**stated),
    )


class SignatureEntry(Explanation, frozen=True, kw_only=True):
    """A signature as it is written in a file, below its id.

    `severity`: fatal ends a job; benign looks bad and does no harm. `role`: a consequence follows
    another failure, which is reported elsewhere. `kind`: an echo is what a rank says when another
    has failed; exit: how a process ended; kill: it ended without a word; stop: somebody ended the
    job; general: any error, if nothing more precise is known of the line. `late`: the line comes
    when a step ends, long after the failure. `literals`: every line of it holds one of them;
    default: the text in the pattern. `pattern`: Python regex that is searched in the line, or its
    parts in a list. `example`: what a log says, a line or more. `sources`: pages that document it.
    `process`: what the title calls a process whose exit code the line states. `by_memory`: the
    explanation instead, for each kind of shortage of GPU memory. `found_by`: the reader of several
    lines that makes it.
    """

    group: SignatureGroup
    severity: LogSeverity
    role: SignatureRole = "cause"
    kind: SignatureKind = "failure"
    late: bool = False
    literals: tuple[Annotated[str, Meta(min_length=4, max_length=200)], ...] = ()
    pattern: Annotated[str, Meta(min_length=1)] | Annotated[tuple[str, ...], Meta(min_length=1)]
    example: Annotated[str, Meta(min_length=1)]
    sources: tuple[str, ...] = ()
    process: str = ""
    by_memory: dict[MemoryShortage, Explanation] = field(default_factory=dict)
    found_by: Composed | None = None


class Signature(SignatureEntry, frozen=True, kw_only=True, dict=True):
    """One kind of failure, and the line that identifies it.

    The named groups of `pattern` fill the `{name}` of `title`, where `{of_rank}` is ` of rank 3` or
    nothing (see `explain`). `origin` is `hpctrain`, or `file:line` of a site's file.
    """

    id: str
    origin: str
    pattern: str

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern; most of them are never needed for a log, so that each is compiled late."""
        return re.compile(self.pattern)

    def search(self, text: str) -> re.Match[str] | None:
        """Return the match; in a long line, a site's pattern is searched near a literal.

        A site's pattern that takes too long is named, and finds nothing from then on.
        """
        if self.origin == PACKAGED:
            return self.compiled.search(text)
        known = self._timed.is_slow
        match = self._timed.search_near(text, self.literals)
        if self._timed.is_slow and not known:
            _log.warning("%s: the pattern of %s takes too long; left out", self.origin, self.id)
        return match

    @cached_property
    def _timed(self) -> TimedPattern:
        return TimedPattern(self.pattern)


_SLIGHT: frozenset[str] = frozenset({"filesystem", "software", "container"})
# Output that a process may have buffered before it failed: two buffers [B].
_BUFFERED = 2 * 8192


class Sighting(Value, frozen=True, kw_only=True):
    """A signature seen in a log; `file` is the number of the log.

    `text` is the line, or a summary of the lines of a box or traceback, at most 500 characters.
    `time` is ISO 8601 text without a zone, if the line has a time; `when` that time or, without
    one, that of the previous sighting in the file. `groups` are the named groups of the pattern
    that matched; the groups of several lines are merged. `work_after` [B] is the amount of log
    from its line to the last lines of work in the file.
    """

    of: Signature
    source: str
    line: int
    text: str
    rank: int | None = None
    node: str | None = None
    time: str | None = None
    groups: tuple[tuple[str, str], ...] = ()
    file: int = 0
    when: str | None = None
    work_after: int = 0

    @property
    def signature(self) -> str:
        """Return the id of the signature."""
        return self.of.id

    @property
    def place(self) -> tuple[int, int]:
        """Return its position: file, line."""
        return self.file, self.line

    @property
    def tells_end(self) -> bool:
        """Whether the line only reports how a process ended."""
        return self.of.kind in ("exit", "kill")

    @property
    def exit_code(self) -> str:
        """Return the exit code that a launcher reports, or an empty string."""
        return dict(self.groups).get("exitcode", "")

    @property
    def is_first(self) -> bool:
        """Whether torchrun reports this failure as the first."""
        return ("root", "yes") in self.groups

    @property
    def fatal(self) -> bool:
        """Whether a job cannot continue after it."""
        return self.of.severity == "fatal" and not self.survived

    @property
    def survived(self) -> bool:
        """Whether the work continued after it."""
        # Printed by a tool of the job script, or by a library that has a fallback.
        frame = "file" in dict(self.groups)
        slight = self.of.group in _SLIGHT and not frame and self.rank is None
        return self.work_after > (0 if slight else _BUFFERED)


# Catalogue: all signatures in the order in which they are tried, those of a site first.

FOLDER = "signatures"
# In a pattern of the package: what sbatch says when it refuses a job.
_REFUSALS = "{refusals}"


class Catalogue:
    """Signatures in the order in which they are tried on a line, with their literals.

    `owners` maps a literal to the positions in `single` of the signatures that use it.
    """

    def __init__(self, signatures: Iterable[Signature]) -> None:
        self.by_id = {one.id: one for one in signatures}
        self.signatures = tuple(self.by_id.values())
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
    """Return the signatures of the folders, of one id those of the first one, and the package's."""
    known = {one.id: one for one in packaged()}
    found: dict[str, Signature] = {}
    for folder in dict.fromkeys(folders):
        here: dict[str, Signature] = {}
        for path in sorted((folder / FOLDER).glob("*.yaml")):
            for one in read_own(path):
                place = f"{one.origin}: signatures.{one.id}"
                if one.id in known and known[one.id].found_by:
                    raise SignatureError(
                        f"{place}: hpctrain uses this id for several lines; choose another",
                        "hpctrain diagnose --list names the ids",
                    )
                if one.id in here:
                    other = here[one.id].origin
                    raise SignatureError(f"{place}: {other} has this id, too; choose another")
                here[one.id] = one
        found |= {name: one for name, one in here.items() if name not in found}
    return Catalogue((*found.values(), *(one for one in packaged() if one.id not in found)))


@cache
def packaged() -> tuple[Signature, ...]:
    """Return the signatures that come with the package."""
    paths = [data_file(FOLDER, f"{name}.yaml") for name in failures().files]
    # The package's tests have checked them.
    return tuple(one for path in paths for one in read_signatures(path, PACKAGED)[1])


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
    found = []
    for name, entry in file.value.signatures.items():
        stated = {key: getattr(entry, key) for key in entry.__struct_fields__}
        pattern = "".join(entry.pattern)
        if origin == PACKAGED and _REFUSALS in pattern:
            pattern = pattern.replace(_REFUSALS, "|".join(map(re.escape, known_refusals())))
        literals = entry.literals or tuple(filter(None, [literal_of(pattern)]))
        place = origin or file.near(f"signatures.{name}")
        own = {**stated, "pattern": pattern, "literals": literals}
        found.append(Signature(**own, id=name, origin=place))
    return file, tuple(found)


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
        yield signature


def check(signature: Signature, file: Sourced[SignatureFile]) -> None:
    """Check the rules that the types do not express.

    Raises:
        SignatureError: with file:line.
    """
    where = f"signatures.{signature.id}"
    if not _ID.fullmatch(signature.id):
        raise SignatureError(
            f"{file.near(where)}: the id {signature.id!r} must be 3 to 80 lower-case letters, "
            "digits and _"
        )
    for key, text, hint in _mistakes(signature):
        path = f"{where}.{key}"
        raise SignatureError(f"{file.near(path)}: {path}: {text}", hint)


def _mistakes(signature: Signature) -> Iterator[tuple[str, str, str]]:
    """Yield the key of each mistake, what is wrong, and what to do."""
    if len(signature.pattern) > _LONGEST:
        yield "pattern", f"is longer than {_LONGEST} characters", ""
    try:
        groups = set(TimedPattern(signature.pattern).groupindex)
    except (re.error, OverflowError, RecursionError) as error:
        yield "pattern", f"the regex cannot be read: {error}", ""
        return
    yield from _mistakes_in_literals(signature)
    for key in ("title", "cause", "advice"):
        for name in _NAME.findall(getattr(signature, key)):
            if name not in groups and name not in FILLED_IN:
                known = ", ".join(sorted({*groups, *FILLED_IN}))
                text = f"{{{name}}} is no group of the pattern{nearest(name, groups)}"
                yield key, f"{text}; known: {known}", ""
    if signature.origin == PACKAGED:
        return
    for taken in sorted(_TAKEN & groups):
        text = f"the group {taken!r} is filled from tracebacks; use another name"
        yield "pattern", text, ""
    if signature.found_by is not None:
        text = "only hpctrain's own code makes a signature of several lines; leave this key out"
        yield "found_by", text, ""


def _mistakes_in_literals(signature: Signature) -> Iterator[tuple[str, str, str]]:
    literals = signature.literals
    if not literals or min(len(one.encode()) for one in literals) < _LEAST:
        text = f"the regex has no text of {_LEAST} characters or more that every match contains"
        hint = "logs are searched for it first; name it: literals: ['quota daemon']"
        yield "pattern", text, hint
    for number, literal in enumerate(literals):
        if set(literal) & set("\r\n"):
            yield f"literals.{number}", "must be on one line", ""
    lines = signature.example.splitlines()
    held = [line for line in lines if any(literal in line for literal in literals)]
    if signature.found_by is None and not any(map(signature.search, held)):
        none = f"contains none of the literals {', '.join(map(repr, literals))}"
        yield "example", f"the pattern does not match {held[0]!r}" if held else none, ""


# Sighting -> title, cause and advice, filled with the values of the line; exit codes.

_UNKNOWN = "?"
_SIZE = re.compile(r"[\d.]{1,16} (?:[KMGTPE]i?B|bytes|B)\b")
_UNITS = {"bytes": 1, "B": 1} | {
    f"{letter}{ending}": float(base**power)
    for power, letter in enumerate("KMGTPE", 1)
    for ending, base in (("iB", 1024), ("B", 1000))
}
# A smaller fraction of the GPU's memory is not the cause.
_SMALL = 0.05
_ROUNDING = 1.02


def is_crash(exit_code: str) -> bool:
    """Whether a process was killed or crashed without a message."""
    return failures().ended(exit_code).crash


def explain(signature: Signature, sighting: Sighting) -> Explanation:
    """Return the explanation of a sighting; values that the line does not state are `?`."""
    groups = dict(sighting.groups)
    explanation = Explanation(title=signature.title, cause=signature.cause, advice=signature.advice)
    if signature.by_memory and (kind := kind_of(groups)):
        explanation = signature.by_memory.get(kind, explanation)
    if "refused" in groups and (refusal := refusal_of(groups["refused"])):
        named = named_options(groups["refused"])
        about = f" (--{named[0]})" if len(named) == 1 else ""
        meaning = f"Slurm refused the job: {refusal.meaning}{about}"
        advice = refusal.advice or signature.advice
        explanation = Explanation(title=meaning, cause=groups["refused"], advice=advice)
    by_signal = groups.get("killed") or groups.get("number")
    code = f"-{by_signal}" if by_signal else groups.get("exitcode", "")
    if signature.process and code:
        end = failures().ended(code)
        how, advice = (text.replace("{exit_code}", code) for text in (end.how, end.advice))
        title = f"{signature.process} {how}"
        explanation = Explanation(title=title, cause=end.cause, advice=advice)
    rank = groups.get("rank") if sighting.rank is None else sighting.rank
    groups["of_rank"] = "" if rank is None else f" of rank {rank}"
    if sighting.node:
        groups.setdefault("node", sighting.node)
    # Messages of old PyTorch versions contain only the total of reserved memory.
    groups.setdefault("unused", groups.get("reserved", _UNKNOWN))
    groups.setdefault("message", groups.get("code", ""))
    tasks = groups.get("tasks", "")
    groups["these_tasks"] = f"Task{'' if tasks.isdecimal() else 's'} {tasks}"

    def fill(text: str) -> str:
        filled = _NAME.sub(lambda name: groups.get(name[1], _UNKNOWN).rstrip(), text)
        return filled.replace("  ", " ")

    return Explanation(
        title=fill(explanation.title).rstrip(" :"),
        cause=fill(explanation.cause),
        advice=fill(explanation.advice),
    )


def size(text: str) -> float:
    """Return the bytes of `1.5 GiB`; 0 if the text is not a size."""
    number, _, unit = text.partition(" ")
    try:
        return float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        return 0.0


def _others(groups: Mapping[str, str], own: float, taken: float) -> float:
    """Return how many of the `taken` bytes other processes hold; this one holds at least `own`."""
    sizes = [size(text) for text in _SIZE.findall(groups.get("others", ""))]
    # In a container, PyTorch cannot determine which of the processes is its own.
    if "used" not in groups and sum(sizes) + own > _ROUNDING * taken:
        sizes.sort()
        itself = next((held for held in sizes if held * _ROUNDING >= own), 0.0)
        return sum(sizes) - itself
    return sum(sizes)


def kind_of(groups: Mapping[str, str]) -> MemoryShortage | None:
    """Return the cause of the memory shortage, from the groups of `cuda_oom`; None if unknown."""
    tried, total, free, allocated, unused, reserved = (
        size(groups.get(name, ""))
        for name in ("tried", "total", "free", "allocated", "unused", "reserved")
    )
    if not total or not allocated:
        return None
    unused = unused or max(reserved - allocated, 0.0)
    others = _others(groups, allocated + unused, total - free)
    if others >= _SMALL * total and others + free >= tried and others > unused:
        return "other_processes"
    if unused >= _SMALL * total and unused + free >= tried:
        return "fragmentation"
    return "full"
