"""Script: the text that is submitted, byte for byte."""

from __future__ import annotations

from hpc_train.model.value import Value


class TemplateFile(Value, frozen=True, kw_only=True):
    """A template that was used: where it lies, the sha256 of its bytes, and whether it is ours."""

    name: str
    path: str
    shipped: bool
    digest: str


class Script(Value, frozen=True, kw_only=True):
    """A rendered job script; `digest` is the sha256 of its UTF-8 bytes, in hex.

    `templates` are the files it was made of, in the order of their use; `template_digest` changes
    when the name or the bytes of one of them do.
    """

    text: str
    digest: str
    template_digest: str
    templates: tuple[TemplateFile, ...] = ()
