"""Every regular expression of the package: in its objects, in its code and in its data."""

import ast
import functools
import gc
import importlib
import pkgutil
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import hpc_train
from hpc_train.base.data_folders import data_file
from hpc_train.base.variable_names_and_secrets import SECRET_FORMS
from hpc_train.diagnosis.scan_logs import marks
from hpc_train.diagnosis.signatures import packaged
from hpc_train.lint.directives import srun_value_forms
from hpc_train.logs.formats.formats import compiled, read_formats
from hpc_train.nccl.transport import nccl_lines

ROOT = Path(hpc_train.__file__).parent
_CALLS = frozenset({"match", "search", "fullmatch", "findall", "finditer", "sub", "subn", "split"})


def modules() -> list[types.ModuleType]:
    """Return all modules of the package, imported."""
    names = (found.name for found in pkgutil.walk_packages([str(ROOT)], "hpc_train."))
    return [importlib.import_module(name) for name in names if not name.endswith("__main__")]


def patterns() -> dict[re.Pattern[Any], str]:
    """Return each pattern with the place where it was found first."""
    found: dict[re.Pattern[Any], str] = {}
    seen: set[int] = set()
    for module in modules():
        for name, value in vars(module).items():
            for pattern in _held(value, seen):
                found.setdefault(pattern, f"{module.__name__}.{name}")
        for line, pattern in _written(module):
            found.setdefault(pattern, f"{module.__name__}:{line}")
    in_data = [(one.compiled, one.id) for one in packaged()]
    in_data += [(one.compiled, one.literals[0]) for one in (*marks().ends, *marks().starts)]
    in_data += [(one.compiled, one.kind) for one in nccl_lines().messages]
    in_data += [(re.compile(one.each), one.kind) for one in nccl_lines().messages if one.each]
    named = read_formats(data_file("formats.yaml")).value.formats["tensorboard"].values
    in_data += [(re.compile(pattern), "tensorboard") for pattern in named]
    in_data += [(re.compile(pattern), form) for form, (_, pattern) in SECRET_FORMS.items()]
    for pattern, name in in_data:
        found.setdefault(pattern, f"data.{name}")
    formats = read_formats(data_file("formats.yaml"))
    for name in formats.value.formats:
        shapes, damaged = compiled(formats, name)
        for one in (damaged, *(p for kind in shapes for p in (kind.pattern, kind.each, kind.cut))):
            if isinstance(one, re.Pattern):
                found.setdefault(one, f"formats.{name}")
    for option, form in srun_value_forms().items():
        # As `fullmatch` tries it.
        whole = re.compile(rf"\A(?:{form.form})\Z", re.IGNORECASE | re.VERBOSE)
        found.setdefault(whole, f"slurm_values.{option}")
    return found


def _held(root: object, seen: set[int]) -> Iterator[re.Pattern[Any]]:
    """Yield the patterns that are reached from an object without leaving the package.

    What another module led to before is not read again.
    """
    waiting = [root]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, types.ModuleType | str | bytes | int | float):
            continue
        seen.add(id(one))
        if isinstance(one, re.Pattern):
            yield one
        elif _ours(one):
            waiting += gc.get_referents(one)
            if isinstance(one, msgspec.Struct):
                waiting += [getattr(one, name) for name in one.__struct_fields__]


def _ours(one: object) -> bool:
    # What a cache holds depends on the tests that ran before.
    if isinstance(one, functools._lru_cache_wrapper):
        return False
    if isinstance(one, dict):
        return "__builtins__" not in one
    if isinstance(one, type | types.FunctionType):
        return str(one.__module__).startswith("hpc_train")
    return True


def _written(module: types.ModuleType) -> Iterator[tuple[int, re.Pattern[Any]]]:
    """Yield the patterns that stand in calls: `re.fullmatch(r"...", text)`."""
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        called = node.func
        if called.attr in _CALLS and isinstance(called.value, ast.Name) and called.value.id == "re":
            try:
                # It is the package's own text, as its own call reads it.
                text = eval(ast.unparse(node.args[0]), vars(module))  # noqa: S307
            except NameError:
                continue
            if isinstance(text, str | bytes):
                yield node.lineno, re.compile(text)
