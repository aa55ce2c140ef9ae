"""What a server of PBS says of job arrays: their largest size, and its version."""

from __future__ import annotations

import re

from hpc_train.errors import SubmitError
from hpc_train.model.value import Value
from hpc_train.submissions.pbs.pbs_commands import call_pbs, message_of, transient

# Of a server that does not say: PBS's default of max_array_size (pbs_server_attributes(7B)).
_ARRAY_SIZE = 10_000
# `%N`, a limit of running subjobs: openpbs pull request 2038 of September 2020, after version 19.
_WITH_LIMIT = 20


class ServerSettings(Value, frozen=True, kw_only=True):
    """The largest number of subjobs of an array, and the version; empty if it is unknown."""

    max_array_size: int = _ARRAY_SIZE
    version: str = ""

    @property
    def limits_running(self) -> bool:
        """Whether qsub accepts a limit of running subjobs, `-J 1-9%N`."""
        major = re.match(r"[0-9]{1,9}", self.version)
        return major is None or int(major[0]) >= _WITH_LIMIT


def server_settings() -> ServerSettings:
    """Query the server.

    Raises:
        SubmitError: it does not answer.
    """
    done = call_pbs("qstat", "-B", "-f")
    if done.returncode != 0 and transient(done.stderr):
        hint = "qstat -B answers when the server does; submit again then"
        raise SubmitError(f"PBS does not answer: {message_of(done)}", hint)
    text = done.stdout
    size = re.search(r"^ {4}max_array_size = ([0-9]{1,9})$", text, re.MULTILINE)
    version = re.search(r"^ {4}pbs_version = (\S{1,64})$", text, re.MULTILINE)
    return ServerSettings(
        max_array_size=int(size[1]) if size else _ARRAY_SIZE, version=version[1] if version else ""
    )
