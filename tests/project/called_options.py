"""The options of Slurm's programs in rendered scripts, and in the calls of hpctrain itself."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("sbatch", "srun", "scontrol", "squeue", "sacct", "scancel", "sinfo", "sacctmgr")
Used = tuple[str, str]

_DIRECTIVE = re.compile(r"^#SBATCH --([a-z-]+)", re.MULTILINE)
# A word of a shell command ends at a blank; quotes may have blanks inside.
_WORD = r"""(?:"[^"]*"|'[^']*'|[^\s"'|)])+"""
_CALL = re.compile(rf"(?<![\w\"'=./-])({'|'.join(PROGRAMS)})((?:[ ]+{_WORD})+)")
_OPTION = re.compile(r"^-{1,2}([A-Za-z][A-Za-z0-9-]*)")


def in_script(text: str) -> Iterator[Used]:
    """Yield the options in a job script, each with its program."""
    yield from (("sbatch", name) for name in _DIRECTIVE.findall(text))
    lines = text.replace("\\\n", " ").splitlines()
    for line in (line for line in lines if not re.match(r"\s*(#|echo )", line)):
        for program, words in _CALL.findall(line):
            yield from ((program, name) for name in _leading(program, re.findall(_WORD, words)))


def _leading(program: str, words: list[str]) -> Iterator[str]:
    """Yield the options of a program; those of srun end before the command that it starts."""
    before = ""
    for word in words:
        if found := _OPTION.match(word):
            yield found[1]
        elif program == "srun" and len(before) != len("-n"):
            return
        before = word


def in_module(path: Path) -> Iterator[Used]:
    """Yield the options in calls of a module, and in all of a module named after a program."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Call, ast.Tuple, ast.List)):
            words = node.args if isinstance(node, ast.Call) else node.elts
            texts = [_text(word) for word in words]
            starts = [index for index, text in enumerate(texts[:3]) if text in PROGRAMS]
            for index in starts[:1]:
                yield from _options(texts[index], texts[index + 1 :])
    if path.stem in PROGRAMS:
        texts = [_text(node) for node in ast.walk(tree)]
        yield from _options(path.stem, [text for text in texts if text.startswith("--")])


def _options(program: str, texts: list[str]) -> Iterator[Used]:
    for text in texts:
        if found := _OPTION.match(text):
            yield program, found[1]


def _text(node: ast.AST) -> str:
    """Return a constant text, or the constant beginning of an f-string."""
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
