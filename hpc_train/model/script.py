"""Script: the text that is submitted, byte for byte."""

from __future__ import annotations

from hpc_train.model.value import Value


class Script(Value, frozen=True, kw_only=True):
    """A rendered job script; `digest` is the sha256 of its UTF-8 bytes, in hex."""

    text: str
    digest: str
    template_digest: str
