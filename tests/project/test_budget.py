"""The size of the whole: its budget is what is measured; it is lowered and never raised."""

import ast
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULE_LINES, FUNCTION_LINES = 700, 80
# An entry may be this much above what is measured.
SLACK = 0.02
BUDGET: dict[str, float] = {
    "modules": 276,
    "lines of modules": 66_942,
    "modules with a single importer": 48,
    "per cent of lines that are imports": 6.3,
    "imports inside functions": 217,
    "value classes": 389,
    "lines of tests": 49_999,
    "test files": 401,
    "words of docs": 39_203,
    "lines of templates": 991,
}
VALUE_BASES = {"NamedTuple", "TypedDict", "Struct"}
Function = ast.FunctionDef | ast.AsyncFunctionDef
Import = ast.Import | ast.ImportFrom


@cache
def tracked(*patterns: str) -> dict[str, str]:
    """Return the files that git tracks below the root, and their texts."""
    command = ["git", "ls-files", "-z", "--", *patterns]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = {name: ROOT / name for name in names.split("\0") if name}
    return {name: path.read_text("utf-8") for name, path in paths.items() if path.is_file()}


@cache
def trees() -> dict[str, ast.Module]:
    """Return the modules of the package by their dotted names."""
    sources = tracked("hpc_train/*.py")
    return {
        name.removesuffix(".py").replace("/", ".").removesuffix(".__init__"): ast.parse(text)
        for name, text in sources.items()
    }


def lines(texts: Mapping[str, str]) -> int:
    return sum(text.count("\n") for text in texts.values())


def imports(tree: ast.AST) -> Iterator[Import]:
    return (node for node in ast.walk(tree) if isinstance(node, Import))


def imported(node: Import) -> set[str]:
    """Return the modules of the package that a statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names} & trees().keys()
    below = {f"{node.module}.{alias.name}" for alias in node.names} & trees().keys()
    return below or {str(node.module)} & trees().keys()


def length(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def functions() -> Iterator[tuple[str, Function]]:
    for name, tree in trees().items():
        yield from ((name, node) for node in ast.walk(tree) if isinstance(node, Function))


def value_classes() -> int:
    """Return the number of classes that hold values, also those that extend one of the package."""
    found = [node for tree in trees().values() for node in ast.walk(tree)]
    classes = [node for node in found if isinstance(node, ast.ClassDef)]
    bases: dict[str, set[str]] = {}
    for node in classes:
        names = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        bases[node.name] = bases.get(node.name, set()) | names
    kinds = set(VALUE_BASES)
    while more := {name for name, above in bases.items() if above & kinds} - kinds:
        kinds |= more
    decorated = {
        node.name
        for node in classes
        if any("dataclass" in ast.unparse(x) for x in node.decorator_list)
    }
    return sum(node.name in kinds | decorated for node in classes)


def measured() -> dict[str, float]:
    package, tests = tracked("hpc_train/*.py"), tracked("tests/*.py")
    importers = Counter(
        module
        for name, tree in trees().items()
        for module in set().union(*map(imported, imports(tree))) - {name}
    )
    import_lines = sum(length(node) for tree in trees().values() for node in imports(tree))
    inside = {id(node) for _, function in functions() for node in imports(function)}
    return {
        "modules": len(package),
        "lines of modules": lines(package),
        "modules with a single importer": sum(number == 1 for number in importers.values()),
        "per cent of lines that are imports": round(100 * import_lines / lines(package), 1),
        "imports inside functions": len(inside),
        "value classes": value_classes(),
        "lines of tests": lines(tests),
        "test files": sum(Path(name).name.startswith("test_") for name in tests),
        "words of docs": sum(len(x.split()) for x in tracked("docs/*.md", "README.md").values()),
        "lines of templates": lines(tracked("templates")),
    }


def problems(budget: Mapping[str, float], found: Mapping[str, float]) -> list[str]:
    """Return what is above its budget, and what has a budget that is too high."""
    assert budget.keys() == found.keys()
    above = [
        f"{number} {name}, the budget is {budget[name]}: remove as much elsewhere"
        for name, number in found.items()
        if number > budget[name]
    ]
    loose = [
        f"{number} {name}, the budget is {budget[name]}: lower the budget to {number}"
        for name, number in found.items()
        if budget[name] > number * (1 + SLACK)
    ]
    return above + loose


def test_the_whole_is_within_its_budget() -> None:
    assert problems(BUDGET, measured()) == []


def test_a_budget_has_two_sides() -> None:
    assert problems({"modules": 100}, {"modules": 99}) == []
    assert problems({"modules": 102}, {"modules": 100}) == []
    (above,) = problems({"modules": 100}, {"modules": 101})
    assert above.startswith("101 modules, the budget is 100: ")
    (loose,) = problems({"modules": 103}, {"modules": 100})
    assert loose.endswith("lower the budget to 100")


def test_modules_and_functions_are_short() -> None:
    texts = tracked("hpc_train/*.py") | tracked("tests/*.py")
    assert [x for x, text in texts.items() if text.count("\n") > MODULE_LINES] == []
    assert [f"{x} {node.name}" for x, node in functions() if length(node) > FUNCTION_LINES] == []
