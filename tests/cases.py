"""Tables of cases: what is given and what is expected, as YAML beside the tests."""

from pathlib import Path
from typing import Any

import yaml


def cases(file: str, key: str) -> Any:
    """Return the table of a key in a file, which is named from the folder of the tests."""
    return yaml.safe_load((Path(__file__).parent / file).read_bytes())[key]
