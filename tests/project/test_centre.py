"""The installation for a centre, as docs/install.md prints it, with other folders."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from hpc_train import __version__ as VERSION
from tests.project import installed

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "install.md").read_text(encoding="utf-8").partition("## For a centre")[2]
LATER = "0.9.9"
LMOD = "/usr/share/lmod/lmod/libexec/lmod"
SITE = "perlmutter"
FILES = {"Tcl": ("tcl", ""), "Lua": ("lua", ".lua")}


def blocks(kind: str) -> list[str]:
    """Return the blocks of a kind on the page, in order."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def here(text: str, folder: Path) -> str:
    """Put the folders of a test in place of those of a centre."""
    text = text.replace("/opt/hpctrain", str(folder / "opt"))
    return text.replace("/usr/local/bin", str(folder / "bin")).replace("mycluster", SITE)


def shell(text: str, folder: Path, env: Mapping[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-euc", text], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment(**added: str) -> dict[str, str]:
    foreign = ("PYTHON", "PIP_", "LMOD", "MODULE", "_LMFILES_", "LOADEDMODULES")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **added}


def repack(one: Distribution, folder: Path) -> Path:
    """Write the wheel that an installed distribution came from, without its programs."""
    tag = re.search(r"^Tag: (\S+)$", one.read_text("WHEEL") or "", re.MULTILINE)
    assert tag, one.name
    name = re.sub(r"[-_.]+", "_", one.name)
    wheel = folder / f"{name}-{one.version}-{tag[1]}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in one.files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                archive.write(Path(str(one.locate_file(file))), file.as_posix())
    return wheel


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheel and those that it requires: the index of `pip download`."""
    folder = tmp_path_factory.mktemp("index")
    words = ("--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT))
    subprocess.run([sys.executable, "-m", "build", *words], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    for one in installed.required(installed.of_wheel(wheel)):
        repack(one, folder)
    return folder


@pytest.fixture(scope="module")
def centre(index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with `opt`, `bin` and `modules`: this version, and a later one beside it."""
    folder = tmp_path_factory.mktemp("centre")
    (folder / "bin").mkdir()
    install, download = blocks("sh")
    env = environment(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(index))
    pip = download.replace("pip download", f"{sys.executable} -m pip download --quiet")
    shell(pip, folder, env)
    quiet = install.replace('pip" install', 'pip" install --quiet --no-compile')
    shell(here(quiet, folder), folder, environment())
    add_later_version(folder / "opt")
    return folder


def add_later_version(opt: Path) -> None:
    """Copy the installation, as a version that only says its number."""
    shutil.copytree(opt / VERSION, opt / LATER, symlinks=True)
    (version,) = (opt / LATER).glob("venv/lib/python*/site-packages/hpc_train/__init__.py")
    version.write_text(version.read_text().replace(VERSION, LATER))
    program = opt / LATER / "venv" / "bin" / "hpctrain"
    program.write_text(program.read_text().replace(f"/opt/{VERSION}/", f"/opt/{LATER}/"))


def module_files(folder: Path, kind: str) -> Path:
    """Write the module files of both versions; return the folder for MODULEPATH."""
    language, suffix = FILES[kind]
    place = folder / f"modules-{language}"
    (place / "hpctrain").mkdir(parents=True, exist_ok=True)
    for version in (VERSION, LATER):
        text = here(blocks(language)[0], folder)
        (place / "hpctrain" / f"{version}{suffix}").write_text(text)
    (place / "hpctrain" / ".version").write_text(blocks("tcl")[1])
    return place


def test_the_page_names_this_version() -> None:
    assert set(re.findall(r"\d+\.\d+\.\d+", PAGE.partition("## Python 3.9")[0])) == {VERSION}


def test_one_link_is_the_whole_installation(centre: Path) -> None:
    env = environment(PATH=f"{centre / 'bin'}:/usr/bin:/bin")
    assert shell("hpctrain --version", centre, env).strip() == f"hpctrain, version {VERSION}"
    assert "local" in shell("hpctrain site list", centre, env)
    prefix = centre / "opt" / VERSION
    assert [path.name for path in (prefix / "bin").iterdir()] == ["hpctrain"]
    assert (prefix / "share" / "man" / "man1" / "hpctrain.1").is_file()


@pytest.mark.modules
@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize(("name", "version"), [("hpctrain", VERSION), (f"hpctrain/{LATER}", LATER)])
def test_a_module_sets_the_path_and_the_site(
    centre: Path, kind: str, name: str, version: str
) -> None:
    env = environment(PATH="/usr/bin:/bin", MODULEPATH=str(module_files(centre, kind)))
    text = f'eval "$({LMOD} bash load {name})"; hpctrain --version; hpctrain site detect 2>&1'
    printed = shell(f"set +e; {text}; command -v hpctrain; command -v python3", centre, env)
    lines = printed.splitlines()
    assert lines[0] == f"hpctrain, version {version}"
    assert f"site {SITE}: $HPCTRAIN_SITE" in printed
    assert lines[-2:] == [str(centre / "opt" / version / "bin" / "hpctrain"), "/usr/bin/python3"]
