"""Strict YAML: each key has its line, and the error for an unknown key names the nearest one.

Scalars are those of YAML 1.2: `on`, `yes`, `1:30:00` and `2026-11-01` are text, as times and node
features require. Duplicate keys are refused.
"""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.resolver import Resolver

from hpc_train.base.errors import HpcTrainError, nearest

MAX_NODES = 100_000
_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
MAX_DEPTH = 50
# The value of an environment variable is text: `0123` and `1e-3` reach the program as written.
_VARIABLE = re.compile(r"(?:^|\.)env\.")
_LIMIT = 4 * 1024 * 1024
# Python converts at most 4,300 digits.
_DIGITS = 4000


# libyaml's parser is seven times as fast; its composer overflows the stack on deep nesting.
_Parser: Any = yaml.CSafeLoader.__bases__[0]


class _Loader(Composer, _Parser, Resolver):  # type: ignore[misc]
    """Text -> nodes, with the scalars of YAML 1.2's core schema."""

    def __init__(self, stream: str) -> None:
        _Parser.__init__(self, stream)
        Composer.__init__(self)
        Resolver.__init__(self)


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first)
    )


def _in_words(text: str) -> yaml.YAMLError | None:
    """Return the error of PyYAML's own parser, which is more precise than that of libyaml."""
    try:
        yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as failure:
        return failure
    return None


class Document:
    """A YAML file as plain values; `origins` maps a dotted key to `file:line`."""

    def __init__(self, label: str, error: type[HpcTrainError]) -> None:
        self.label = label
        self.error = error
        self.data: Any = None
        self.origins: dict[str, str] = {"": label}
        self._nodes = 0
        self._open: set[int] = set()

    def load(self, text: str, path: str = "") -> None:
        """Fill `data` and `origins` from YAML text.

        Raises:
            HpcTrainError: of the document's own class; bad syntax, duplicate keys, aliases
                without end, more than 100,000 values.
        """
        try:
            root = self._composed(text)
        except RecursionError:
            raise self.error(f"{self.label}: nested too deeply") from None
        if root is None:
            raise self.error(f"{self.label}: the file is empty")
        self.data = self._build(root, path)

    def _composed(self, text: str) -> yaml.Node | None:
        try:
            return yaml.compose(text, Loader=_Loader)
        except yaml.YAMLError as failure:
            raise self._syntax_error(_in_words(text) or failure) from None

    def _syntax_error(self, failure: yaml.YAMLError) -> HpcTrainError:
        mark = getattr(failure, "problem_mark", None)
        place = f"{self.label}:{mark.line + 1}" if mark else self.label
        problem = getattr(failure, "problem", None) or str(failure).splitlines()[0]
        context = getattr(failure, "context", None)
        detail = f"{problem} ({context})" if context else problem
        hint = "indent with blanks; YAML allows no tabs" if "'\\t'" in detail else ""
        if "block end" in detail or "mapping values are not allowed" in detail:
            hint = "keys of one mapping begin in the same column; a text with ': ' needs quotes"
        return self.error(f"{place}: not valid YAML: {detail}", hint)

    def _fail(self, node: yaml.Node, text: str) -> HpcTrainError:
        return self.error(f"{self.label}:{node.start_mark.line + 1}: {text}")

    def _build(self, node: yaml.Node, path: str) -> Any:
        self._nodes += 1
        if self._nodes > MAX_NODES or id(node) in self._open:
            raise self._fail(node, f"more than {MAX_NODES} values, or an alias to itself")
        self.origins.setdefault(path, f"{self.label}:{node.start_mark.line + 1}")
        if len(self._open) > MAX_DEPTH:
            raise self._fail(node, "nested too deeply")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, as_text=bool(_VARIABLE.search(path)))
        if node.tag not in _COLLECTIONS:
            raise self._fail(node, f"the tag {node.tag} is not allowed here")
        self._open.add(id(node))
        built = (
            self._mapping(node, path)
            if isinstance(node, yaml.MappingNode)
            else [self._build(item, join(path, str(i))) for i, item in enumerate(node.value)]
        )
        self._open.discard(id(node))
        return built

    def _mapping(self, node: yaml.MappingNode, path: str) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            if not isinstance(key, str):
                raise self._fail(key_node, "a key must be a word")
            self._check_letters(key_node, key)
            if key in result:
                raise self._fail(key_node, f"the key {key!r} is given twice")
            child = join(path, key)
            self.origins[child] = f"{self.label}:{key_node.start_mark.line + 1}"
            result[key] = self._build(value_node, child)
        return result

    def _check_letters(self, node: yaml.Node, text: str) -> None:
        if "\0" in text:
            raise self._fail(node, "a NUL character cannot be passed to any program")
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise self._fail(node, f"{text!r} is not UTF-8 text")

    def _scalar(self, node: yaml.ScalarNode, *, as_text: bool) -> Any:
        kind = node.tag.rpartition(":")[2]
        text: str = node.value
        if as_text and kind in ("bool", "int", "float"):
            kind = "str"
        self._check_letters(node, text)
        match kind:
            case "bool":
                return text.lower() == "true"
            case "null":
                return None
            case "int" if len(text) > _DIGITS:
                raise self._fail(node, f"a number of {len(text)} digits")
            case "int":
                return int(text)
            case "float":
                return float(text)
            case "str":
                return text
        raise self._fail(node, f"the tag {node.tag} is not allowed here")


def join(path: str, key: str) -> str:
    """Return the dotted path of `key` below `path`."""
    return f"{path}.{key}" if path else key


def read(path: Path, error: type[HpcTrainError], label: str | None = None) -> Document:
    """Read a YAML file; its lines are reported below the name that the user gave.

    Raises:
        HpcTrainError: of class `error`; the file is missing, unreadable, not UTF-8, or not YAML.
    """
    document = Document(label or str(path), error)
    try:
        with path.open("rb") as stream:
            raw = stream.read(_LIMIT + 1)
    except OSError as failure:
        message = f"{path}: {failure.strerror or failure}{nearest_file(path)}"
        raise error(message, list_files(path)) from None
    if len(raw) > _LIMIT:
        raise error(f"{path}: larger than {_LIMIT // 2**20} MiB; is this the right file?")
    try:
        document.load(raw.decode("utf-8"))
    except UnicodeDecodeError as failure:
        hint = "a YAML file is text; a program is submitted by its name"
        raise error(f"{path}: not UTF-8 text (byte {failure.start})", hint) from None
    return document


def value_of(text: str, label: str, error: type[HpcTrainError], key: str = "") -> Any:
    """Read one value as it is written after `--set KEY=`; empty text is an empty string."""
    if not text:
        return ""
    document = Document(label, error)
    document.load(text, key)
    return document.data


def nearest_file(path: Path) -> str:
    """Return `; did you mean 'x'?` for a missing file, or nothing."""

    if path.exists() or not path.parent.is_dir():
        return ""
    # Two names are not alike because both end in .yaml.
    names = {entry.name.removesuffix(path.suffix): entry.name for entry in path.parent.iterdir()}
    near = nearest(path.stem, names)
    found = near.partition("'")[2].rpartition("'")[0]
    return near.replace(repr(found), repr(names[found])) if near else ""


def list_files(path: Path) -> str:
    """Return the command that lists the files beside a missing one; empty if the file exists.

    If its folder is missing as well, the command lists the nearest folder that exists.
    """
    if path.exists():
        return ""
    folder = next((one for one in path.parents if one.is_dir()), Path("/"))
    return f"list the files there: ls {shlex.quote(str(folder))}"


def lookup(data: Any, path: str) -> Any:
    """Return the value at a dotted path, or None."""
    for key in path.split(".") if path else []:
        if isinstance(data, Mapping):
            data = data.get(key)
        elif isinstance(data, list) and key.isdigit() and int(key) < len(data):
            data = data[int(key)]
        else:
            return None
    return data
