"""Script: the text that is submitted, byte for byte."""

from __future__ import annotations

from hpc_train.model.value import Value


class TemplateFile(Value, frozen=True, kw_only=True):
    """A template that was used: path, sha256 of its bytes, and whether it is shipped."""

    name: str
    path: str
    shipped: bool
    digest: str


class Script(Value, frozen=True, kw_only=True):
    """A rendered job script; `digest` is the sha256 of its UTF-8 bytes, in hex.

    `templates` are its files, in the order of their use; `template_digest` changes with the name or
    the bytes of any of them.
    """

    text: str
    digest: str
    template_digest: str
    templates: tuple[TemplateFile, ...] = ()
