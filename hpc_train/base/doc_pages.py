"""The pages of docs/ that the package contains: names, titles and texts.

`hpctrain help` prints them, so that a message may name a page wherever hpctrain is installed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hpc_train.base.data_folders import doc_folder
from hpc_train.base.errors import UnknownNameError

_FIRST = "index"


def page_titles() -> dict[str, str]:
    """Return the title of each page by its name, the first one of the site first.

    Raises:
        HpcTrainError: the installation has no pages.
    """
    paths = sorted(doc_folder().glob("*.md"), key=lambda path: (path.stem != _FIRST, path.stem))
    return {path.stem: _title(path) for path in paths}


def page_text(name: str, commands: Iterable[str] = ()) -> str:
    """Return a page as Markdown; the name may be that of its file, `docs/events.md`.

    Where there is no such page, the nearest name may also be one of `commands`.

    Raises:
        UnknownNameError: no page has this name. HpcTrainError: the installation has no pages.
    """
    word = Path(name).name.partition("#")[0].removesuffix(".md")
    titles = page_titles()
    if word not in titles:
        raise UnknownNameError("page", word, [*titles, *commands], hint="hpctrain help lists them")
    return (doc_folder() / f"{word}.md").read_text(encoding="utf-8")


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline().removeprefix("# ").strip()
