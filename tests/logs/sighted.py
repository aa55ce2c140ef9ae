"""Text -> what the catalogue sees in it, as `diagnose` reads a file."""

import io

from hpc_train.diagnosis.signature_matcher import SymptomReader
from hpc_train.diagnosis.signatures import Sighting
from hpc_train.logs.line import dispatch


def sighted(text: str | bytes, rank: int | None = None) -> list[Sighting]:
    """Return the sightings of a log, in order."""
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    reader = SymptomReader("log")
    return [
        sighting
        for line, asked in dispatch(io.BytesIO(data), [reader], rank)
        if asked
        for sighting in reader.read(line)
    ]


def ids(text: str | bytes) -> list[str]:
    """Return the ids of the signatures that are seen."""
    return [sighting.signature for sighting in sighted(text)]


def groups(text: str | bytes) -> dict[str, str]:
    """Return the named groups of the only sighting."""
    (sighting,) = sighted(text)
    return dict(sighting.groups)
