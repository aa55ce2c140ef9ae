"""Names of templates -> files: the first with that name on the search path, none outside it.

Compiled templates of the package are cached beside Python's bytecode.
"""

import hashlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from types import CodeType
from typing import Any, cast

import jinja2
from jinja2 import FileSystemBytecodeCache, nodes
from jinja2.runtime import Context

from hpc_train.base.data_folders import data_file
from hpc_train.base.errors import RenderError, nearest
from hpc_train.base.values import Value
from hpc_train.runs.run import TemplateFile

PACKAGE = "package:"
_NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*/)*[A-Za-z0-9_][A-Za-z0-9_.-]*")
_LIMIT = 1024 * 1024
_EXTENDS = re.compile(r"{%-? *extends +[\"']([^\"']+)")
_BLOCK = re.compile(r"{%-? *block +(\w+)")
FOLDER = Path(cache_from_source(__file__)).parent
# These determine the compiled form: Jinja applies filters to constants as it compiles.
_DETERMINING = ("template_loader.py", "render.py")
MODULES = tuple(Path(__file__).with_name(name) for name in _DETERMINING)
PATTERN = "template-%s.bin"


class Rendering:
    """One script on its way."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self.values = values
        # In order, each once.
        self.used: dict[str, None] = {}
        # Files that the script needs beside it: name and text.
        self.beside: dict[str, str] = {}


current: ContextVar[Rendering] = ContextVar("current")


@jinja2.pass_context
def beside(context: Context, name: str) -> str:
    """Record that the script needs a file of the template folders beside it; return its name."""
    current.get().beside[name] = cast(Any, context.environment).text_of(name)
    return name


class TemplateLoader(jinja2.BaseLoader):
    """Loads templates from the folders of a site, in order, and then from the package.

    The name in Jinja is `START:NAME`, where START is the first folder to search.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)
        self._roots = tuple(folder.resolve() for folder in folders)
        self._files: dict[str, TemplateFile] = {}

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
        """Load a template whose imports are recorded."""
        text, path, uptodate = self.get_source(environment, name)

        def compiled() -> CodeType:
            tree = _import_with_context(environment.parse(text, name, path))
            self._check_blocks(tree, text, name, path)
            return environment.compile(tree, name, path)

        try:
            shipped = self._files[name].shipped
            code = cached_code(environment, name, path, text, compiled) if shipped else compiled()
        except RecursionError:
            raise RenderError(f"{path}: nested too deeply") from None
        return environment.template_class.from_code(environment, code, globals or {}, uptodate)

    def _check_blocks(self, tree: nodes.Template, text: str, child: str, path: str) -> None:
        """Refuse a block that no extended template has: Jinja would silently ignore it."""
        allowed: set[str] = set()
        known, reference = {""}, child
        # What is wrong with an extended template is said where it is loaded.
        with suppress(jinja2.TemplateNotFound, RenderError, UnicodeDecodeError):
            while reference not in known and (above := _EXTENDS.search(text)):
                known.add(reference)
                reference = self.reference(above[1], reference)
                text = _read(self._find(reference)[1]).decode()
                allowed.update(_BLOCK.findall(text))
        for block in _outer(tree) if allowed else ():
            if block.name not in allowed:
                raise jinja2.TemplateSyntaxError(
                    f"unknown block {block.name!r}{nearest(block.name, allowed)}; "
                    f"allowed: {', '.join(sorted(allowed))}",
                    block.lineno,
                    child,
                    path,
                )

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


def _outer(node: nodes.Node) -> Iterator[nodes.Block]:
    """Yield the blocks that are not inside another."""
    for child in node.iter_child_nodes():
        if isinstance(child, nodes.Block):
            yield child
        else:
            yield from _outer(child)


def cached_code(
    environment: jinja2.Environment,
    name: str,
    path: str,
    text: str,
    compiled: Callable[[], CodeType],
) -> CodeType:
    """Return the cached result of `compiled` for a template, if nothing has changed."""
    cache = FileSystemBytecodeCache(str(FOLDER), PATTERN)
    bucket = cache.get_bucket(environment, name, path, text + _modules_stamp())
    if bucket.code is None:
        bucket.code = compiled()
        # Like Python, work without a cache if it cannot be written.
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                cache.set_bucket(bucket)
    return bucket.code


@cache
def _modules_stamp() -> str:
    return "".join(f"{path.name} {_stamp(path)}\n" for path in MODULES)


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
