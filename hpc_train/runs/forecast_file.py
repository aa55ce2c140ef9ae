"""The forecasts of a program: `forecasts/NAME.json` in the folder of all results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from hpc_train.json_files import exclusive, read_json, to_json, write_file
from hpc_train.model.stored_forecast import StoredForecast, StoredForecasts
from hpc_train.regularfile import is_there

FOLDER = "forecasts"


def forecast_file(results: Path, name: str) -> Path:
    """Return the file of the forecasts of a job or study."""
    return results / FOLDER / f"{name}.json"


def read_forecasts(results: Path, name: str) -> tuple[StoredForecast, ...]:
    """Return the forecasts of a job or study; there may be none.

    Raises:
        StoreError: the file is damaged, or a newer version wrote it.
    """
    path = forecast_file(results, name)
    return read_json(path, StoredForecasts).forecasts if is_there(path) else ()


def names_with_forecasts(results: Path) -> list[str]:
    """Return the jobs and studies with forecasts, sorted."""
    return sorted(path.stem for path in (results / FOLDER).glob("*.json"))


def update_forecasts(
    results: Path,
    name: str,
    change: Callable[[Sequence[StoredForecast]], tuple[StoredForecast, ...]],
) -> None:
    """Replace the forecasts of a job or study by what `change` makes of them.

    Raises:
        StoreError: the file is damaged, or cannot be written.
    """
    with exclusive(results / FOLDER / ".lock"):
        known = read_forecasts(results, name)
        changed = change(known)
        if changed != known:
            content = to_json(StoredForecasts(forecasts=changed))
            write_file(forecast_file(results, name), content)
