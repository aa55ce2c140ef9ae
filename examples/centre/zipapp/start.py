"""`__main__` of hpctrain.pyz: unpacks the packages once for each build, Python and user.

The folder in the cache is an environment as `python -m venv` makes it, for processes that hpctrain
starts. This process imports from one more file there, with all compiled modules: a parallel file
system needs a request to its server for each path. (The bootstrap of shiv, which unpacks as well,
makes about twice as many for `--help`, `status` and `render`.)
"""

# Python 3.6 must be able to read this file, and print the sentence of `names_for_this_python`.
import signal

# Python would print a traceback for a Ctrl-C during the imports.
if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
import marshal
import os
import stat
import sys
import time
import zlib
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path

# build.py writes the version and a digest.
BUILD = ""
PACKAGES, MODULES = "packages.zip", "modules"
SITE = Path("lib", "python{}.{}".format(*sys.version_info), "site-packages")
# Programs that remove files which were not used for weeks find that all were.
KEEP_S = 7 * 86400.0


def main():
    try:
        folder = unpacked(Path(sys.path.pop(0)).absolute())
    except KeyboardInterrupt:
        sys.exit(130)
    ModuleLoader.open(folder)
    sys.meta_path.insert(0, ModuleLoader)
    sys.path.append(str(folder / SITE))
    sys.executable = str(folder / "bin" / "python")
    from hpc_train.__main__ import main as run

    run()


class ModuleLoader(SourceFileLoader):
    """Loads modules from the one file; `__file__` is their source, which has data beside it."""

    @classmethod
    def open(cls, folder):
        cls.site, descriptor = folder / SITE, os.open(folder / MODULES, os.O_RDONLY | os.O_CLOEXEC)
        size = int.from_bytes(os.pread(descriptor, 8, 0), "little")
        # Not foreign data: the program itself.
        cls.modules = marshal.loads(os.pread(descriptor, size, 8))  # noqa: S302
        cls.descriptor, cls.start = descriptor, 8 + size

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in cls.modules:
            return None
        file = f"{cls.site}/{cls.modules[name][0]}"
        return spec_from_file_location(name, file, loader=cls(name, file))

    def get_code(self, fullname):
        _, place, size = self.modules[fullname]
        return marshal.loads(os.pread(self.descriptor, size, self.start + place))  # noqa: S302


def unpacked(archive):
    """Return the folder: in the user's cache, or where that cannot be, in TMPDIR."""
    # The environment inside refers to its Python.
    python = zlib.crc32(os.fsencode(sys.base_prefix))
    name = f"{BUILD}-{sys.implementation.cache_tag}-{python:08x}"
    home, temporary = os.environ.get("HOME"), os.environ.get("TMPDIR") or "/tmp"  # noqa: S108
    cache = os.environ.get("XDG_CACHE_HOME") or (home and f"{home}/.cache")
    places = [Path(cache, "hpctrain", "zipapp", name).absolute()] if cache else []
    places.append(Path(temporary, f"hpctrain-{os.geteuid()}-{name}").absolute())
    for folder in filter(is_usable, places):
        with suppress(OSError):
            keep(folder)
        return folder
    failures = []
    for folder in places:
        try:
            write(archive, folder)
        except OSError as failure:
            failures.append(f"{failure.filename or folder}: {failure.strerror}")
        # Another process may have been first.
        if is_usable(folder):
            return folder
    return end(f"{'; '.join(failures)}; set XDG_CACHE_HOME to a folder for files and programs")


def is_usable(folder):
    """Whether the folder is whole, and no other user can have written it."""
    try:
        found = folder.lstat()
        mine = found.st_uid == os.geteuid() and not found.st_mode & 0o022
        return mine and stat.S_ISDIR(found.st_mode) and (folder / MODULES).exists()
    except OSError:
        return False


def keep(folder):
    if (folder / MODULES).stat().st_mtime < time.time() - KEEP_S:
        for path in folder.rglob("*"):
            os.utime(path, follow_symlinks=False)


def write(archive, folder):
    """Write the folder under a temporary name, and rename it."""
    import shutil
    import tempfile

    parent, temporary, mask = folder.parent, "", os.umask(0o077)
    try:
        # An interrupt now leaves files, which `finally` removes.
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        parent.mkdir(parents=True, exist_ok=True)
        if os.statvfs(parent).f_flag & os.ST_NOEXEC:
            raise OSError(1, "mounted noexec", str(parent))
        temporary = Path(tempfile.mkdtemp(prefix="hpctrain-", dir=parent))
        fill(archive, temporary, folder / SITE)
        if not is_usable(folder):
            # What a purge left of it is in the way.
            with suppress(OSError):
                folder.rename(temporary / "purged")
            temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.umask(mask)


def fill(archive, folder, final):
    import io
    import venv
    import zipfile

    codes, index, place = [], {}, 0
    inner = io.BytesIO(zipfile.ZipFile(archive).read(PACKAGES))
    with zipfile.ZipFile(inner) as packages:
        names = names_for_this_python(archive, packages.namelist())
        venv.create(folder, system_site_packages=True, symlinks=True)
        packages.extractall(folder / SITE, names)
        for name in (name for name in names if name.endswith(".py")):
            code = compile(packages.read(name), f"{final}/{name}", "exec", dont_inherit=True)
            codes.append(marshal.dumps(code))
            module = name[: -len(".py")].replace("/", ".").removesuffix(".__init__")
            index[module] = (name, place, len(codes[-1]))
            place += len(codes[-1])
    # Here jinja2 keeps compiled templates, and makes no folder.
    (folder / SITE / "hpc_train" / "scripts" / "__pycache__").mkdir()
    head = marshal.dumps(index)
    (folder / MODULES).write_bytes(len(head).to_bytes(8, "little") + head + b"".join(codes))


def names_for_this_python(archive, names):
    """Return the members without compiled extensions for other Pythons."""
    suffix = EXTENSION_SUFFIXES[0]
    found = {"." + name.split(".", 1)[1] for name in names if name.startswith("msgspec/_core.")}
    if suffix not in found:
        tags = ", ".join(sorted(name.split(".")[1] for name in found))
        end(
            f"{archive} is for {tags}; {sys.executable} is {suffix.split('.')[1]}: start it with "
            f"another Python, as in: python3.12 {archive}"
        )
    return [name for name in names if not name.endswith(".so") or name.endswith(suffix)]


def end(reason):
    sys.stderr.write(f"hpctrain: {reason}\n")
    sys.exit(2)


if __name__ == "__main__":
    main()
