"""The command `drover`, also as `python -m drover` where the script is not on the path."""

import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    try:
        # Imported here: most of a short command's time is imports, and Ctrl-C ends them as it ends everything else.
        from drover.cli.main import main as run  # noqa: PLC0415 - Ctrl-C during this import is caught below

        run()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(INTERRUPTED)
    finally:
        # Python ends by the signal, not with a code, once Ctrl-C has passed through the `exec` of some text, as data
        # classes use while they are imported. The next one makes it forget that.
        exec("")  # noqa: S102 - an empty constant: the call itself clears the state


if __name__ == "__main__":
    main()
