"""Sizes and habits that keep the code readable: long modules, long functions, broad excepts."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULE_LINES = 250
FUNCTION_LINES = 40
Function = ast.FunctionDef | ast.AsyncFunctionDef
BROAD = {"Exception", "BaseException"}
# What a busy machine may need for a command of a second.
WAIT_S = 200


def modules() -> list[Path]:
    return sorted(path for top in ("hpc_train", "tests") for path in (ROOT / top).rglob("*.py"))


@cache
def nodes() -> list[tuple[str, Function | ast.ExceptHandler | ast.Call]]:
    """Return the functions, the handlers and the calls of all modules, each with its place."""
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno}", node)
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, Function | ast.ExceptHandler | ast.Call)
    ]


def waits(call: ast.Call) -> list[float]:
    """Return the limits of waiting that are written in a call."""
    values = [key.value for key in call.keywords if key.arg in ("timeout", "within_s")]
    if isinstance(call.func, ast.Attribute) and call.func.attr == "wait":
        values += call.args[:1]
    constants = [value.value for value in values if isinstance(value, ast.Constant)]
    return [float(one) for one in constants if isinstance(one, int | float)]


def caught(handler: ast.ExceptHandler) -> set[str]:
    """Return the names that a handler catches; `BaseException` where it names none."""
    if handler.type is None:
        return {"BaseException"}
    listed = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {ast.unparse(kind).rpartition(".")[2] for kind in listed}


def test_modules_are_short() -> None:
    sizes = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    assert {path: size for path, size in sizes.items() if size > MODULE_LINES} == {}


def test_functions_are_short() -> None:
    sizes = {
        f"{where} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for where, node in nodes()
        if isinstance(node, Function)
    }
    assert {name: size for name, size in sizes.items() if size > FUNCTION_LINES} == {}


def test_no_broad_except() -> None:
    handlers = [(at, node) for at, node in nodes() if isinstance(node, ast.ExceptHandler)]
    broad = [at.partition(":")[0] for at, handler in handlers if caught(handler) & BROAD]
    # What hands an error on to another thread or process has to catch any.
    assert broad == [
        "hpc_train/records/live_pipe_batches.py",
        "hpc_train/workload/spawn_ranks.py",
        "tests/cli/preloaded.py",
    ]


def test_no_test_fails_because_the_machine_is_busy() -> None:
    calls = [(at.partition(":")[0], one) for at, one in nodes() if isinstance(one, ast.Call)]
    short = [at for at, call in calls for limit in waits(call) if limit < WAIT_S]
    # These expect the end of the time.
    assert [at for at in short if at.startswith("tests/")] == [
        "tests/api/test_submit.py",
        "tests/pipeline/test_waiting.py",
        "tests/submissions/hosts/test_transport.py",
    ]
