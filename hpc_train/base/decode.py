"""Plain values -> typed values, each with its origin; messages for those of a wrong type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import inspect as kinds

from hpc_train.base.data_folders import data_file
from hpc_train.base.errors import HpcTrainError, nearest
from hpc_train.base.registry import names as registered_names
from hpc_train.base.value import Sourced, Value, decode_unit
from hpc_train.base.yamlfile import join, lookup, read

T = TypeVar("T")


def decode(
    data: Any, kind: type[T], origins: Mapping[str, str], error: type[HpcTrainError]
) -> Sourced[T]:
    """Decode plain values into `kind`, with the origin of each.

    Raises:
        HpcTrainError: of class `error`, with the place, the error and the allowed values.
    """
    try:
        value = msgspec.convert(data, kind, dec_hook=decode_unit, strict=True)
    except msgspec.ValidationError as failure:
        # Inspecting the types is slow, and only needed after an error.

        hint = f"{error.keys} describes each key" if error.keys else ""
        raise error(explain(str(failure), data, kind, origins), hint) from None
    return Sourced(value=value, origins=dict(origins))


def load_data(name: str, kind: type[T]) -> T:
    """Return a file of the package's data, below `hpc_train/data`, as a value.

    Raises:
        HpcTrainError: the installation is damaged.
    """
    document = read(data_file(name), HpcTrainError)
    return decode(document.data, kind, document.origins, HpcTrainError).value


def keys_of(kind: type[Value]) -> tuple[str, ...]:
    """Return the keys that a mapping of this kind may have, in order."""
    return kind.__struct_fields__


_PLACE = re.compile(
    r"^(?P<text>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>(?:(?! - at ).)*)`)?$", re.DOTALL
)
_EXPECTED = re.compile(r"Expected `(\w+)\b[^`]*`, got `(\w+)`")
_FIELD = re.compile(r"Object (contains unknown|missing required) field `(?P<name>[^`]*)`")
# The end of every pattern here; messages omit it.
_NO_BREAK = r"(?!\n)"
_FEW_KEYS = 4
_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}


def explain(message: str, data: Any, kind: type, origins: Mapping[str, str]) -> str:
    """Return a message for an error of msgspec, with the place and the allowed values."""
    match = _PLACE.match(message)
    text, raw_path = (match["text"], match["path"] or "") if match else (message, "")
    path = re.sub(r"\[(\d+)\]", r".\1", raw_path).lstrip(".")
    while "[...]" in path:
        path = _offender(data, kind, path)
    field = _FIELD.match(text)
    if field:
        return _field_text(field, kind, path, origins)
    place = Sourced(value=None, origins=origins).near(path)
    wrong = lookup(data, path)
    label = path or "the whole file"
    if match and match["key"]:
        return _key_text(data, kind, path, origins)
    if not text.startswith(("Expected", "Invalid enum")):
        return f"{place}: {label}: {text}"
    if wrong == [] or wrong == {}:
        return f"{place}: {label}: must not be empty"
    quote = "; write it in quotes" if isinstance(wrong, (bool, int, float)) else ""
    quote = quote if wrong is not None else "; a text with a comma needs quotes in {} and []"
    info = _type_at(kind, path)
    allowed = _allowed(info)
    near = nearest(wrong, _words_of(info)) if isinstance(wrong, str) else ""
    inside = _EXPECTED.match(text)
    if allowed == _shown(wrong) and inside:
        # msgspec does not name the place below a free name.
        words = (_WORDS.get(word, word) for word in inside.groups())
        return f"{place}: {label}: a value in it must be {', not '.join(words)}"
    said = f"must be {allowed}, not {_shown(wrong)}{near}"
    if isinstance(wrong, str) and allowed.startswith("text ("):
        # It is text, so that only its form is wrong.
        said = f"{_shown(wrong)} is not valid: {allowed.removeprefix('text (').removesuffix(')')}"
    return f"{place}: {label}: {said}" + (quote if allowed.startswith("text") else "")


def _key_text(data: Any, kind: type, path: str, origins: Mapping[str, str]) -> str:
    info = _unwrap(_type_at(kind, path)).key_type
    wrong = next((key for key in lookup(data, path) or {} if not _fits(key, _unwrap(info))), None)
    place = Sourced(value=None, origins=origins).near(join(path, str(wrong)))
    meaning = next(_descriptions(info), "")
    return f"{place}: {path}: the key {wrong!r} is not valid{_in_parentheses(meaning)}"


def _field_text(field: re.Match[str], kind: type, path: str, origins: Mapping[str, str]) -> str:
    name = field["name"]
    known = _fields_of(_type_at(kind, path))
    where = Sourced(value=None, origins=origins)
    if field[1] == "missing required":
        place = where.near(path)
        meaning = next(_descriptions(known.get(name)), "")
        return f"{place}: the key {join(path, name)!r} is missing{_in_parentheses(meaning)}"
    place = where.near(join(path, name))
    return (
        f"{place}: unknown key {join(path, name)!r}{nearest(name, known)}; "
        f"allowed: {', '.join(known)}"
    )


def _fields_of(info: Any) -> dict[str, Any]:
    inner = _choice(_unwrap(info), "fields")
    return {f.encode_name: f.type for f in inner.fields} if hasattr(inner, "fields") else {}


def _choice(info: Any, attribute: str) -> Any:
    """Return the mapping (`fields`) or the list (`item_type`) of a union of both."""
    found = [item for item in map(_unwrap, getattr(info, "types", ())) if hasattr(item, attribute)]
    return found[0] if found else info


def _offender(data: Any, kind: type, path: str) -> str:
    """Return the path of the invalid entry of a mapping: msgspec prints `[...]` for its key."""
    head, _, tail = path.partition("[...]")
    head = head.rstrip(".")
    info = _unwrap(_unwrap(_type_at(kind, head)).value_type)
    for key, entry in (lookup(data, head) or {}).items():
        if isinstance(info, kinds.StructType):
            if not _converts(entry, info.cls):
                return join(head, key) + tail
        elif not _fits(entry, info):
            return join(head, key)
    return head


def _converts(entry: Any, kind: type) -> bool:
    try:
        msgspec.convert(entry, kind, dec_hook=decode_unit, strict=True)
    except msgspec.ValidationError:
        return False
    return True


def _fits(entry: Any, info: Any) -> bool:
    allowed = info.types if isinstance(info, kinds.UnionType) else (info,)
    names = {type(item).__name__.removesuffix("Type").lower() for item in map(_unwrap, allowed)}
    if "any" in names:
        return True
    actual = {bool: "bool", int: "int", float: "float", str: "str", list: "list"}
    fits = actual.get(type(entry), "none" if entry is None else "dict") in names
    return fits and any(_is_within(entry, item) for item in map(_unwrap, allowed))


def _is_within(entry: Any, info: Any) -> bool:
    """Whether a text has the form of a type; whether a number is in its range."""
    if isinstance(entry, str):
        pattern = getattr(info, "pattern", None)
        return pattern is None or re.search(pattern, entry) is not None
    if isinstance(entry, (int, float)) and not isinstance(entry, bool):
        least, most = getattr(info, "ge", None), getattr(info, "le", None)
        return (least is None or entry >= least) and (most is None or entry <= most)
    return True


def _unwrap(info: Any) -> Any:
    while isinstance(info, kinds.Metadata):
        info = info.type
    if isinstance(info, kinds.UnionType):
        inner = [item for item in info.types if not isinstance(item, kinds.NoneType)]
        return _unwrap(inner[0]) if len(inner) == 1 else info
    return info


def _type_at(kind: type, path: str) -> Any:
    info: Any = kinds.type_info(kind)
    for key in path.split(".") if path else []:
        inner = _choice(_unwrap(info), "item_type" if key.isdigit() else "fields")
        if isinstance(inner, kinds.StructType):
            info = _fields_of(inner).get(key, inner)
        elif isinstance(inner, kinds.DictType):
            info = inner.value_type
        elif hasattr(inner, "item_type"):
            info = inner.item_type
    return info


def _form(info: Any) -> str:
    """Return the description of the value itself, without that of its key."""
    *_, last = ("", *_descriptions(info))
    return _in_parentheses(last)


def _in_parentheses(text: str) -> str:
    return f" ({text})" if text else ""


def _descriptions(info: Any) -> Iterator[str]:
    """Yield the descriptions of a key and of the types that it consists of, in this order."""
    for item in _metadata(info):
        if "description" in (item.extra_json_schema or {}):
            yield str(item.extra_json_schema["description"]).rstrip(".")


def _metadata(info: Any) -> Iterator[Any]:
    while isinstance(info, kinds.Metadata):
        yield info
        info = info.type
    for item in getattr(info, "types", ()):
        yield from _metadata(item)


def _registered(info: Any) -> tuple[str, ...]:
    """Return the names of the registry that a value must be one of, if its type requires that."""
    groups = [item.extra["names"] for item in _metadata(info) if "names" in (item.extra or {})]
    return registered_names(groups[0]) if groups else ()


def _allowed(info: Any) -> str:
    inner = _unwrap(info)
    known = _registered(info)
    if known or isinstance(inner, kinds.LiteralType):
        return f"one of {', '.join(known)}" if known else " or ".join(map(repr, inner.values))
    if isinstance(inner, kinds.IntType) and inner.ge is not None:
        top = f" to {inner.le}" if inner.le is not None else " up"
        return f"a whole number from {inner.ge}{top}"
    if isinstance(inner, kinds.FloatType) and inner.le is not None:
        low = f"above {inner.gt:g}" if inner.gt is not None else "of any sign"
        return f"a number {low} and at most {inner.le:g}"
    if isinstance(inner, kinds.StrType) and inner.pattern and not _form(info):
        return f"text like {inner.pattern.removesuffix(_NO_BREAK)}"
    if isinstance(inner, kinds.UnionType):
        names = [_allowed(item) for item in inner.types]
        return ", ".join(names[:-1]) + " or " + names[-1]
    name = type(inner).__name__.removesuffix("Type").lower()
    words = {"list": "array", "vartuple": "array", "dict": "object", "struct": "object"}
    keys = [field.encode_name for field in getattr(inner, "fields", ())]
    named = f" with the keys {', '.join(keys)}" if 0 < len(keys) <= _FEW_KEYS else ""
    return _WORDS.get(words.get(name, name), name) + named + _form(info)


def _words_of(info: Any) -> list[str]:
    """Return the allowed words of a value, if its type is a choice of words."""
    if known := _registered(info):
        return list(known)
    inner = _unwrap(info)
    if isinstance(inner, kinds.LiteralType):
        return [str(value) for value in inner.values]
    return [word for item in getattr(inner, "types", ()) for word in _words_of(item)]


def _shown(value: Any) -> str:
    kind = {dict: "object", list: "array", type(None): "null"}.get(type(value))
    text = _WORDS[kind] if kind else repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
