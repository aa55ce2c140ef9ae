"""Names of templates -> files: the first with that name on the search path, none outside it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, MutableMapping, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

import jinja2
from jinja2 import nodes

from hpc_train.base.data_folders import data_file
from hpc_train.base.errors import RenderError, nearest
from hpc_train.runs.run import TemplateFile
from hpc_train.scripts.compiled_template_cache import cached_code
from hpc_train.scripts.template_blocks import Blocks, note_ancestors, read_blocks

PACKAGE = "package:"
_NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*/)*[A-Za-z0-9_][A-Za-z0-9_.-]*")
_LIMIT = 1024 * 1024


class TemplateLoader(jinja2.BaseLoader):
    """Loads templates from the folders of a site, in order, and then from the package.

    The name in Jinja is `START:NAME`, where START is the first folder to search.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)
        self._roots = tuple(folder.resolve() for folder in folders)
        self._files: dict[str, TemplateFile] = {}
        self.blocks: dict[str, Blocks] = {}

    def reference(self, name: str, parent: str | None = None) -> str:
        """Return Jinja's name of the template that `parent` refers to as `name`.

        A template that names itself refers to the next file with that name on the path.

        Raises:
            RenderError: not a name of a template.
        """
        start = 0
        if name.startswith(PACKAGE):
            start, name = len(self._folders) - 1, name.removeprefix(PACKAGE)
        elif parent is not None and name == parent.partition(":")[2]:
            start = self._find(parent)[0] + 1
        if not _NAME.fullmatch(name):
            raise RenderError(
                f"{name!r} is not a name of a template; allowed: a file in a template folder"
            )
        return f"{start}:{name}"

    def file(self, reference: str) -> TemplateFile:
        """Return the file behind a template that was loaded."""
        return self._files[reference]

    def paths(self) -> frozenset[str]:
        """Return the paths of all templates that were loaded."""
        return frozenset(file.path for file in self._files.values())

    def load(
        self,
        environment: jinja2.Environment,
        name: str,
        globals: MutableMapping[str, Any] | None = None,
    ) -> jinja2.Template:
        """Load a template whose blocks and imports are recorded."""
        text, path, uptodate = self.get_source(environment, name)

        def compiled() -> CodeType:
            tree = _import_with_context(environment.parse(text, name, path))
            self.blocks[name] = read_blocks(tree, path)
            return environment.compile(note_ancestors(tree, name, environment), name, path)

        try:
            shipped = self._files[name].shipped
            code = cached_code(environment, name, path, text, compiled) if shipped else compiled()
        except RecursionError:
            raise RenderError(f"{path}: nested too deeply") from None
        made = environment.template_class.from_code(environment, code, globals or {}, uptodate)
        self.blocks.setdefault(name, Blocks(path=path, names=frozenset(made.blocks), outer={}))
        return made

    def get_source(
        self, environment: jinja2.Environment, template: str
    ) -> tuple[str, str, Callable[[], bool]]:
        """Read a template.

        Raises:
            RenderError: it cannot be read, or leads out of its folder.
        """
        place, path = self._find(template)
        start, _, name = template.partition(":")
        shipped = place == len(self._folders) - 1
        # Only an installer has a reason to put links into the package.
        if not shipped and not path.resolve().is_relative_to(self._roots[place]):
            raise RenderError(f"{path}: a link that leads out of {self._folders[place]}")
        # The templates of the package are as constant as its modules.
        stamp, raw = None if shipped else _stamp(path), _read(path)
        self._files[template] = TemplateFile(
            name=name,
            path=str(path),
            shipped=shipped,
            digest=hashlib.sha256(raw).hexdigest(),
        )
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as failure:
            raise RenderError(f"{path}: not UTF-8 text (byte {failure.start})") from None
        earlier = [folder / name for folder in self._folders[int(start) : place]]

        def uptodate() -> bool:
            return not any(map(Path.is_file, earlier)) and (shipped or _stamp(path) == stamp)

        return text, str(path), uptodate

    def _find(self, reference: str) -> tuple[int, Path]:
        """Return the file of a template and the number of its folder."""
        start, _, name = reference.partition(":")
        for place in range(int(start), len(self._folders)):
            path = self._folders[place] / name
            if path.is_file():
                return place, path
        # Programs of single schedulers, which scripts need beside them.
        path = data_file("in_job", name)
        if path.is_file():
            return len(self._folders) - 1, path
        raise jinja2.TemplateNotFound(reference, self._unknown(reference))

    def _unknown(self, reference: str) -> str:
        start, _, name = reference.partition(":")
        folders = self._folders[int(start) :]
        known = sorted({path.name for folder in folders for path in folder.glob("*.j2")})
        return (
            f"unknown template {name!r}{nearest(name, known)}; "
            f"looked in: {', '.join(map(str, folders)) or 'no further folder'}"
        )


def _import_with_context(tree: nodes.Template) -> nodes.Template:
    # Jinja caches what is imported without it, and the templates below would not be recorded.
    for node in tree.find_all((nodes.Import, nodes.FromImport)):
        if isinstance(node, (nodes.Import, nodes.FromImport)):
            node.with_context = True
    return tree


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            raw = stream.read(_LIMIT + 1)
    except OSError as failure:
        raise RenderError(f"{path}: {failure.strerror or failure}") from None
    if len(raw) > _LIMIT:
        raise RenderError(f"{path}: larger than {_LIMIT // 2**20} MiB; is this a template?")
    return raw


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
