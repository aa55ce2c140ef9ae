"""A home that is not there, cannot be written, or is full: commands do without their caches."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.command_line import started

pytestmark = pytest.mark.process

# A number without an entry in the list of users, and without the rights of root.
STRANGER = ("unshare", "--user", "--map-user=54321")
FULL = """
mount -t tmpfs -o nr_inodes=1 full "$HOME"
if mkdir "$HOME/probe" 2>"$OUTPUT"; then exit 99; fi
exec "$@"
"""
FILLED = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-euc", FULL, "sh")
HOMES = {
    "no home": (STRANGER, None, None),
    "read-only": (STRANGER, "home", 0o500),
    "full": (FILLED, "home", 0o700),
}
COMMANDS = {
    "render job.yaml --site local": "#!/",
    "site list": "local",
    "site detect": "without --site",
    "lint job.yaml --site local": "nothing found",
    "submit job.yaml --site local --wait": "COMPLETED",
    "status": "COMPLETED",
    "collect steps.log": "step_time",
}
HIDDEN = ("HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "TMPDIR")


def isolates() -> bool:
    """Whether this kernel gives a user a namespace of users and mounts."""
    words = ("unshare", "--user", "--map-root-user", "--mount", "true")
    return bool(shutil.which("unshare")) and subprocess.run(words, check=False).returncode == 0


@pytest.mark.skipif(not isolates(), reason="no namespaces of users here")
@pytest.mark.parametrize("kind", HOMES)
def test_commands_work_without_a_writable_home(kind: str, tmp_path: Path) -> None:
    prefix, name, mode = HOMES[kind]
    env = {key: value for key, value in os.environ.items() if key not in HIDDEN}
    env |= {"OUTPUT": os.devnull, "TMPDIR": str(tmp_path)}
    if name is not None and mode is not None:
        (tmp_path / name).mkdir(mode=mode)
        env["HOME"] = str(tmp_path / name)
    (tmp_path / "job.yaml").write_text("command: [python3, -c, 'print(1)']\nlauncher: single\n")
    line = "iteration 10/ 100 | elapsed time per iteration (ms): 500.0 | global batch size: 128 |\n"
    (tmp_path / "steps.log").write_text(f" {line}")
    found = started(*COMMANDS, folder=tmp_path, prefix=prefix, environment=env)
    for words, text in COMMANDS.items():
        done = found[words]
        assert text in done.stdout + done.stderr, (words, done)
        assert "Traceback" not in done.stderr, (words, done)
    if name is not None:
        assert list((tmp_path / name).iterdir()) == []
