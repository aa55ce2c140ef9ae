"""The folder of real logs -> its manifest: what each log is known to say."""

import csv
import functools
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "logs"
FOLDER = Path(os.environ.get("HPCTRAIN_SAMPLE_LOGS", _BESIDE))


class Row(NamedTuple):
    """One log: its path below the folder, its format, and what it is expected to say."""

    file: str
    form: str
    expected: dict[str, Any]

    @property
    def path(self) -> Path:
        """Return where the log is."""
        return FOLDER / self.file


def there() -> bool:
    """Whether this machine has the folder."""
    return (FOLDER / "MANIFEST.tsv").is_file()


@functools.cache
def rows() -> tuple[Row, ...]:
    """Return the rows of the manifest."""
    with (FOLDER / "MANIFEST.tsv").open(encoding="utf-8", newline="") as stream:
        table = csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        return tuple(Row(row["file"], row["format"], json.loads(row["expected"])) for row in table)
