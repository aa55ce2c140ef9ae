"""`hpctrain`: its exit codes and its error messages; `hpc_train.__main__` calls `main`."""

import errno
import gc
import os
import signal
import sys

from hpc_train.base.errors import HpcTrainError
from hpc_train.base.plain_text import plain
from hpc_train.cli.commands import help_page

_HELP = (["-h"], ["--help"])
# New objects before the garbage collector looks for cycles: imports alone make about 100,000, and
# almost none of them is garbage.
_OBJECTS = 200_000


def main() -> None:
    """Run the command line and exit: 0 success, 1 failure, 2 invalid input, 3 partial result."""
    _prepare_start()
    try:
        code = _print_help() if sys.argv[1:] in _HELP else _run_command()
    except HpcTrainError as failure:
        complain(failure)
        code = failure.exit_code
    except ModuleNotFoundError as failure:
        code = _missing(failure)
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        # The reader (head, less) has exited.
        _discard_output()
        code = 0
    except OSError as failure:
        # A folder without permission, or a full disk to which stdout is written, is not a bug.
        complain(_system_error(failure))
        if failure.filename is None:
            _discard_output()
        code = 2
    # At the exit, Python would search all objects for cycles once more, and print an interrupt.
    gc.freeze()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code if isinstance(code, int) else 0)


def _system_error(failure: OSError) -> HpcTrainError:
    where, hint = failure.filename or "output", "name another place"
    if failure.errno in (errno.ENOSPC, errno.EDQUOT):
        hint = "free some space, or write to another place; df -h prints what is free"
    elif isinstance(failure, PermissionError) and failure.filename:
        hint = f"ls -ld {where!s} prints who has access; its owner can give it to you"
    return HpcTrainError(f"{where}: {failure.strerror or failure}", hint)


def _discard_output() -> None:
    """Python would write the rest at exit, fail again, and exit with 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _prepare_start() -> None:
    """Leave out work of the interpreter that a command does not need."""
    gc.set_threshold(_OBJECTS)
    # Python puts the folder of the program first, so that each import would look there first. Where
    # the program is a link, it is the folder of the link's target.
    if sys.path and sys.path[0] == os.path.realpath(sys.argv[0]).rpartition("/")[0]:
        del sys.path[0]


def _print_help() -> int:
    sys.stdout.write(help_page())
    sys.stdout.flush()
    return 0


def _run_command() -> object:
    # The import of click would take most of the time of `--help`.
    from hpc_train.cli.group import run

    # From here, an interrupted command has something to say or to remove.
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run()


def _missing(failure: ModuleNotFoundError) -> int:
    """Name the extra of a package that is not installed; any other missing module is a bug."""
    from hpc_train.base.extras import lacking

    error = lacking(failure)
    if error is None:
        raise failure
    complain(error)
    return error.exit_code


def complain(failure: HpcTrainError) -> None:
    """Write an error and its hint to stderr."""
    sys.stderr.write(plain(f"hpctrain: {failure.message}\n"))
    if failure.hint:
        lines = failure.hint.replace("\n", "\n  ")
        sys.stderr.write(plain(f"  {lines}\n"))
