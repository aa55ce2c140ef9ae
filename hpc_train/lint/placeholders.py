"""Placeholders in documentation and templates: the text that somebody replaces before sbatch."""

from __future__ import annotations

import re

_FORMS = (
    r"<[^<>]{1,80}>",
    r"\{\{.{0,80}?\}\}",
    r"\{%.{0,80}?%\}",
    r"\[\[?[A-Za-z][A-Za-z _-]{0,80}\]?\]",
    r"@[A-Za-z_]\w{0,80}@",
    r"%[A-Za-z_]\w{2,80}%",
    r"(?<!\$)\{[A-Za-z_]\w{0,80}\}",
    r"(?i:(?:\bd{1,2}-)?\bh{1,3}:mm(?::ss)?\b)",
    r"(?i:\b(?:your|my|enter|insert|put)[-_ ]\w[\w.-]{0,80})",
    r"\b(?:CHANGE_?ME|REPLACE_?ME|FIX_?ME|TODO|TBD|FILL_?IN|PLACEHOLDER)\b",
    r"^(?:\d{1,6}-)?(?:N{1,2}|X{1,2}|NUM(?:_\w{1,20})?|n_\w{1,20})[KMGT]?$",
    r"\bX{3,80}\b|\bx{3,80}\b|\*{3,80}|\.{3,80}|…|\?{2,80}",
)
_PLACEHOLDER = re.compile("|".join(_FORMS))
# These may contain blanks, at which sbatch would split the directive.
_WITH_BLANKS = re.compile("|".join(_FORMS[:3]))
_LINE = re.compile(
    r"\{%.{0,200}%\}|\{\{.{0,200}\}\}|\{#.{0,200}#\}|<%.{0,200}%>|@\w{1,80}@|<[^<>]{1,80}>|"
    r"\.{3,9}|…"
)


def is_placeholder(text: str) -> bool:
    """Whether a value contains a placeholder: <account>, YOUR_ACCOUNT, {{ nodes }}, @NODES@."""
    return _PLACEHOLDER.search(text) is not None


def without_blanks(text: str) -> str:
    """Join the words of each placeholder, so that it is one word of a directive."""
    return _WITH_BLANKS.sub(lambda match: re.sub(r"\s+", "_", match[0]), text)


def is_template_line(line: str) -> bool:
    """Whether a line is only a placeholder, or a statement of a template."""
    return _LINE.fullmatch(line.strip()) is not None
