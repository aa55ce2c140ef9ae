"""The program `hpctrain`, and `python -m hpc_train`: a Ctrl-C while it starts prints nothing."""

# Nothing else here: Python prints a traceback for a Ctrl-C before `main`.
import signal


def main() -> None:
    """Start the command line. Until it can answer, an interrupt ends the process at once."""
    # A process in the background of a script ignores interrupts, and continues to.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from hpc_train.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
