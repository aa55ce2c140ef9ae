"""`python -m tests.project.tour`: the first hour of three users, as the docs tell it, on the lab.

In an empty folder, types every command of the pages and runs the cells of the notebook, and
compares what each prints with what is shown. A line for each; exit code 1 on a difference.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.api.example_notebook import kernel_path, read_book, type_cells
from tests.conftest import missing
from tests.project.shown_commands import ROOT, Shown, Typed, environment_with, shown, type_page

DOCS = ROOT / "docs"
TUTORIAL, LAB = DOCS / "tutorial.md", DOCS / "lab.md"
UP, DOWN = "hpctrain lab up", "hpctrain lab down"
# `make` has installed the checkout and the packages.
INSTALLED = ("pip ", "apt-get ")
LAB_ENVIRONMENT = ". /var/tmp/hpctrain-lab/env; "
MOST_TO_A_FIGURE = 8


class Way(NamedTuple):
    """The commands of a page with one prompt, and shell code before each."""

    user: str
    page: Path
    prompt: str = "$"
    before: str = ""

    def commands(self) -> list[Shown]:
        return [one for one in shown(self.page, self.prompt) if not one.line.startswith(INSTALLED)]


ON_ONE_MACHINE = (
    Way("a student with a script", TUTORIAL),
    Way("a reader of logs", DOCS / "logs-and-tables.md"),
)
ON_THE_LAB = (
    Way("a student on Slurm", TUTORIAL, "#"),
    Way("a sysadmin who starts the lab", LAB, "#"),
    Way("a sysadmin on a login node", DOCS / "writing-a-site.md", before=LAB_ENVIRONMENT),
)


def desk(folder: Path) -> dict[str, str]:
    """Put into an empty folder what the pages assume; return the environment of the commands."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copy(ROOT / "examples/book/train.py", folder)
    (folder / "bin").mkdir()
    homes = {name: str(folder / name) for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    # Where its cache of fonts takes seconds to make, Matplotlib says so on stderr.
    fonts = os.environ.get("MPLCONFIGDIR") or str(Path.home() / ".cache/matplotlib")
    return {**environment_with(folder / "bin"), **homes, "MPLCONFIGDIR": fonts}


def walk_the_lab(folder: Path, environment: Mapping[str, str]) -> Iterator[tuple[str, Typed]]:
    """Type the commands of all ways on the lab; they share one, which ends last."""
    skipped = {DOWN}
    try:
        for way in ON_THE_LAB:
            commands = [one for one in way.commands() if one.line not in skipped]
            for typed in type_page(commands, folder, environment, way.before):
                yield way.user, typed
            skipped = {UP, DOWN}
    finally:
        down = [one for one in ON_THE_LAB[0].commands() if one.line == DOWN]
        ended = list(type_page(down, folder, environment))
    yield from ((ON_THE_LAB[0].user, one) for one in ended)


def to_the_first_figure() -> list[str]:
    """Return the commands from the installation to the first figure on the lab, by the tutorial."""
    install = [one.line for one in shown(TUTORIAL) if one.line.startswith("pip ")]
    packages = [one.line for one in shown(LAB, "#") if one.line.startswith("apt-get ")]
    lines = [one.line for one in ON_THE_LAB[0].commands()]
    figure = next(number for number, line in enumerate(lines) if line.endswith(".pdf"))
    return [*install, *packages, *lines[: figure + 1]]


def walk_all(folder: Path) -> Iterator[tuple[str, Typed]]:
    """Walk every way, those without Slurm first; yield who types, and what came of it."""
    environment = desk(folder)
    for way in ON_ONE_MACHINE:
        local = {**environment, "HPCTRAIN_SITE": "local"}
        for typed in type_page(way.commands(), folder, local):
            yield way.user, typed
    # The kernel has the environment of this process.
    os.environ["PATH"], before = kernel_path(), os.environ["PATH"]
    for typed in type_cells(read_book(), folder / "examples"):
        yield "a notebook", typed
    os.environ["PATH"] = before
    yield from walk_the_lab(folder, environment)


def main() -> int:
    """Walk, and print a line for each command; return the exit code."""
    lacking = missing("slurm") or ("" if os.geteuid() == 0 else "the lab needs root")
    if lacking:
        print(f"make tour: {lacking}", file=sys.stderr)
        return 1
    count = different = 0
    last = ""
    with tempfile.TemporaryDirectory() as folder:
        for user, typed in walk_all(Path(folder)):
            if user != last:
                print(f"\n{user}", flush=True)
            last, count = user, count + 1
            different += bool(typed.difference)
            print(f"  {'differs' if typed.difference else 'ok     '}  {typed.line}", flush=True)
            if typed.difference:
                print("".join(f"      {line}\n" for line in typed.difference.splitlines()), end="")
    figure = to_the_first_figure()
    print(f"\n{count} commands, {different} with other output than the docs show")
    print(f"from installation to the first figure on the lab: {len(figure)} commands")
    return 1 if different or len(figure) > MOST_TO_A_FIGURE else 0


if __name__ == "__main__":
    sys.exit(main())
