import shlex
import sys
from pathlib import Path

import pytest

from hpc_train.base.errors import MissingExtraError
from hpc_train.base.extras import EXTRAS, install_command, lacking, need


def test_an_environment_without_pip_is_one_of_uv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", f"{tmp_path}/my env")
    monkeypatch.setitem(sys.modules, "pip", None)
    words = shlex.split(install_command("fast"))
    assert words[:-1] == ["uv", "pip", "install", "--python", f"{tmp_path}/my env"]


def test_all_that_is_missing_is_named_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in EXTRAS["report"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"^x needs pandas, scipy and matplotlib; install"):
        need("x", "report")
    with pytest.raises(MissingExtraError, match=r"^x needs scipy; install it: .*, or use a file$"):
        need("x", "report", "use a file", only=("scipy",))


@pytest.mark.parametrize(
    ("module", "extra"),
    [("numpy.linalg", "report"), ("matplotlib", "report"), ("pyarrow.parquet", "parquet")],
)
def test_a_failed_import_names_its_extra(module: str, extra: str) -> None:
    error = lacking(ModuleNotFoundError(name=module))
    assert error is not None
    top = module.partition(".")[0]
    assert str(error).startswith(f"this command needs {top}; install it: ")
    assert f"[{extra}]'" in str(error)


@pytest.mark.parametrize("module", ["msgspec", "hpc_train.nothing", None])
def test_any_other_missing_module_is_a_bug(module: str | None) -> None:
    assert lacking(ModuleNotFoundError(name=module)) is None
