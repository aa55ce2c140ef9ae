"""`build.py FOLDER FILE`: one file that runs hpctrain, from a folder with its packages.

`make zipapp` calls it. Compiled extensions have their Python in their names, so that the folder
has those of several.
"""

import hashlib
import shutil
import sys
import tempfile
import zipapp
from pathlib import Path

START = Path(__file__).with_name("start.py")


def main(packages: Path, target: Path) -> None:
    (metadata,) = packages.glob("hpctrain-*.dist-info")
    build = f"{metadata.stem.partition('-')[2]}-{digest(packages)}"
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        shutil.make_archive(f"{folder}/packages", "zip", packages)
        start = START.read_text().replace('BUILD = ""', f'BUILD = "{build}"')
        Path(folder, "__main__.py").write_text(start)
        zipapp.create_archive(folder, target, "/usr/bin/env python3")
    print(f"{target} {target.stat().st_size / 1e6:.1f} MB")


def digest(packages: Path) -> str:
    """Return a digest of all files: two builds never share a folder."""
    found = hashlib.sha256(START.read_bytes())
    for path in sorted(path for path in packages.rglob("*") if path.is_file()):
        found.update(f"{path.relative_to(packages)}\0{path.stat().st_size}\0".encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
