"""`python -m tests.net`: compare what the product says with the record; `make net` is it.

Without arguments: name each text that changed, exit code 1. `--write` records what is said now.
`--show NAME` prints a text, and how it differs from that of the last commit.
"""

import argparse
import difflib
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor

from tests.net.sayings import DIGESTS, GROUPS, ROOT, is_here, said, stored, text_of


def main() -> int:
    """Run as the docstring of the module says; return the exit code."""
    parser = argparse.ArgumentParser(prog="make net")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--show", metavar="NAME")
    parser.add_argument("--text", metavar="NAME", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.text or given.show:
        text = text_of(given.text or given.show)
        print(text)
        if given.show:
            print(_difference(given.show, text))
        return 0
    with ProcessPoolExecutor(2) as workers:
        now = dict(zip(GROUPS, workers.map(said, GROUPS), strict=True))
    before = stored() if DIGESTS.exists() else {group: {} for group in GROUPS}
    changed = [line for group in GROUPS for line in changes(before[group], now[group])]
    print("\n".join(changed) or f"{sum(map(len, now.values()))} texts are as recorded")
    if given.write:
        write(before, now)
        return 0
    return int(bool(changed))


def changes(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """Return a line for each text that is new, gone or another one."""
    gone = [f"gone: {name}" for name in before if name not in now and is_here(name)]
    new = [f"new: {name}" for name in now if name not in before]
    both = [name for name in now if before.get(name, now[name]) != now[name]]
    return [*gone, *new, *(f"changed: {name}" for name in both)]


def write(before: dict[str, dict[str, str]], now: dict[str, dict[str, str]]) -> None:
    """Write the record; texts whose input is not on this machine keep their digests."""
    lines = []
    for group, digests in now.items():
        kept = {name: one for name, one in before[group].items() if not is_here(name)}
        lines += [f"{group} {one} {name}" for name, one in sorted({**kept, **digests}.items())]
    DIGESTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _difference(name: str, text: str) -> str:
    """Return the difference from what the last commit says, which runs in a copy of it."""
    with tempfile.TemporaryDirectory() as copy:
        tree = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", copy], input=tree.stdout, check=True)
        command = [sys.executable, "-m", "tests.net", "--text", name]
        environment = {"PYTHONPATH": copy, "HPCTRAIN_SAMPLE_LOGS": str(ROOT.parent / "shared/logs")}
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    if done.returncode:
        return f"the last commit has no text {name!r}"
    before, after = done.stdout.splitlines(), f"{text}\n".splitlines()
    lines = difflib.unified_diff(before, after, "last commit", "now", lineterm="")
    return "\n".join(lines) or "as in the last commit"


if __name__ == "__main__":
    sys.exit(main())
