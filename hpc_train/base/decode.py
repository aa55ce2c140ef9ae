"""Plain values -> typed values, each with its origin; messages for those of a wrong type."""

from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import inspect as kinds

from hpc_train.base.data_folders import data_file
from hpc_train.base.errors import HpcTrainError, nearest
from hpc_train.base.registry import names as registered_names
from hpc_train.base.values import Sourced, Value, decode_unit
from hpc_train.base.yamlfile import join, read

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
        hint = f"{error.keys} describes each key" if error.keys else ""
        raise error(_explained(data, kind, origins, str(failure)), hint) from None
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


def _explained(data: Any, kind: Any, origins: Mapping[str, str], text: str, path: str = "") -> str:
    """Return a message for the first part of a value that is refused, with the allowed values."""
    where, inner = Sourced(value=None, origins=origins), _member(kind, data)
    types = _types(inner, data)
    parts = data.items() if isinstance(data, dict) else enumerate(data) if types else ()
    for key, value in parts if types else ():
        child = join(path, str(key))
        if key not in types:
            near = nearest(str(key), types)
            return f"{where.near(child)}: unknown key {child!r}{near}; allowed: {', '.join(types)}"
        if said := _refusal(value, types[key]):
            return _explained(value, types[key], origins, said, child)
    if isinstance(data, dict) and _is_struct(inner):
        lacking = [
            f"{join(path, field.encode_name)!r}"
            + _in_parentheses(next(_descriptions(kinds.type_info(field.type)), ""))
            for field in msgspec.structs.fields(inner)
            if field.required and field.encode_name not in data
        ]
        if lacking:
            return f"{where.near(path)}: missing key{'s' * bool(lacking[1:])} {', '.join(lacking)}"
    if isinstance(data, dict) and data and get_origin(inner) is dict:
        own = get_args(inner)[0]
        for key in data:
            if _refusal(key, own):
                meaning = next(_descriptions(kinds.type_info(own)), "")
                place = where.near(join(path, str(key)))
                return f"{place}: {path}: the key {key!r} is not valid{_in_parentheses(meaning)}"
    return f"{where.near(path)}: {path or 'the whole file'}: {_wrong(data, kind, text)}"


def _wrong(value: Any, kind: Any, text: str) -> str:
    """Return why a value without parts is refused; `text` is what msgspec says."""
    if not text.startswith(("Expected", "Invalid enum")):
        return text.partition(" - at ")[0]
    if value in ([], {}):
        return "must not be empty"
    info = kinds.type_info(kind)
    allowed = _allowed(info)
    if isinstance(value, str) and allowed.startswith("text ("):
        # It is text, so that only its form is wrong.
        return f"{_shown(value)} is not valid: {allowed.removeprefix('text (').removesuffix(')')}"
    said = f"must be {allowed}, not {_shown(value)}"
    if isinstance(value, str):
        said += nearest(value, _words_of(info))
    elif allowed.startswith("text") and isinstance(value, (int, float)):
        said += "; write it in quotes"
    elif allowed.startswith("text") and value is None:
        said += "; a text with a comma needs quotes in {} and []"
    return said


def _refusal(value: Any, kind: Any) -> str:
    """Return what msgspec says of a value that is not of this type."""
    try:
        msgspec.convert(value, kind, dec_hook=decode_unit, strict=True)
    except msgspec.ValidationError as failure:
        return str(failure)
    return ""


def _member(kind: Any, value: Any) -> Any:
    """Return the type without what describes it; of a union, that of a mapping or list."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, UnionType):
        members = [_member(one, value) for one in get_args(kind)]
        return next((one for one in members if _types(one, value)), kind)
    return kind


def _types(kind: Any, value: Any) -> dict[Any, Any]:
    """Return the types of the parts of a mapping or list, by their keys; of a struct all keys."""
    if isinstance(value, dict) and _is_struct(kind):
        return {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    if isinstance(value, dict) and get_origin(kind) is dict:
        return dict.fromkeys(value, get_args(kind)[1])
    if isinstance(value, list) and get_origin(kind) in (list, tuple):
        return dict.fromkeys(range(len(value)), get_args(kind)[0])
    return {}


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _unwrap(info: Any) -> Any:
    while isinstance(info, kinds.Metadata):
        info = info.type
    if isinstance(info, kinds.UnionType):
        inner = [item for item in info.types if not isinstance(item, kinds.NoneType)]
        return _unwrap(inner[0]) if len(inner) == 1 else info
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
