"""What a run says of itself in an event -> one hit for each name that is fit to be shown."""

from __future__ import annotations

import re

from hpc_train.model.secret import looks_secret, secret_form
from hpc_train.records.parsers.base import Hit

MOST = 50
_LONGEST = 200
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,49}")


def condition_hits(stated: object, rank: int | None) -> list[Hit]:
    """Return the conditions as hits whose `variant` is `NAME=VALUE`; several ranks may print them.

    Texts, numbers and booleans count; control characters are left out and long texts cut. What
    looks like a secret is no condition.
    """
    if not isinstance(stated, dict):
        return []
    variants = [
        f"{name}={text}"
        for name, value in stated.items()
        if _NAME.fullmatch(name) and (text := _text(value)) and not _is_secret(name, text)
    ]
    return [
        Hit("condition", 1.0, "global", rank=rank, variant=variant, once=variant)
        for variant in variants[:MOST]
    ]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, (str, int, float)):
        return ""
    words = " ".join(str(value).split())
    return "".join(letter for letter in words if letter.isprintable())[:_LONGEST].strip()


def _is_secret(name: str, text: str) -> bool:
    return looks_secret(name, text) or bool(secret_form(text))
