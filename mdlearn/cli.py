"""Command line (CLI): one parser for the commands of the library and of the plugins, and one place for their errors."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Mapping, Sequence

from mdlearn.commands.fitting import FitCommand
from mdlearn.commands.listings import LISTINGS
from mdlearn.commands.predicting import PredictCommand
from mdlearn.commands.studies import CompareCommand, DemoCommand
from mdlearn.commands.verifying import VerifyCommand
from mdlearn.errors import ErrorNotes, came, faulty, is_foreign, is_raised_by, note_origin
from mdlearn.plugins.command import Command, UsageError
from mdlearn.plugins.registry import list_plugins, registered_commands

INTERRUPTED = 130
"""The shells' exit code after Ctrl-C: 128 + SIGINT."""
COMMANDS: tuple[type[Command], ...] = (
    *(DemoCommand, FitCommand, PredictCommand, VerifyCommand, CompareCommand),
    *LISTINGS,
)
CLASSES = {cls.name: cls for cls in COMMANDS}
"""The built-in commands by name."""
IN_OTHER_PACKAGES = {"reproduce": "mdlearn-papers"}
"""Command -> package that brings it, for the error where it is not installed."""


def main(arguments: Sequence[str] | None = None, program: str = "python -m mdlearn") -> int:
    """Run one command of the command line (CLI); exit code 0, 1 for bad input, 2 for wrong usage, 130 for Ctrl-C."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = _run_cli_command(words, program)
        sys.stdout.flush()  # here, so that a reader that has gone is noticed below
        return code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (a pipe into head). Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run_cli_command(words: Sequence[str], program: str) -> int:
    """Run a command of the CLI; what is wrong with its files or values becomes one line on standard error."""
    # What plugins print while they are imported is no output of the command.
    with contextlib.redirect_stdout(sys.stderr):
        commands = {name: CLASSES.get(name, cls)() for name, cls in registered_commands().items()}
    parser, parsers = _cli_parsers(commands, program)
    named = next((word for word in words if not word.startswith("-")), None)
    if named in IN_OTHER_PACKAGES and named not in commands:
        package = IN_OTHER_PACKAGES[named]
        parser.error(f"{named} is a command of the package {package}; run: pip install {package}")
    if named is not None and named not in commands and named not in CLASSES:
        refused = [str(record) for record in list_plugins() if record.error]
        if refused:
            parser.error(f"no command {named!r} is known; plugins with something missing: {'; '.join(refused)}")
    given = parser.parse_args(words)
    command = commands[given.command]
    try:
        code = command.run(given)
        if code is None:  # as of a Python program that ends without one
            return 0
        if not isinstance(code, int):
            raise faulty(command, "command", "run", f"returned {came(code)}, an exit code is needed: 0, or 1")
        return code
    except UsageError as error:
        parsers[given.command].error(str(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        at = error.strerror and error.filename is not None
        return _print_cli_error(f"{error.filename}: {error.strerror}" if at else str(error))
    except MemoryError as error:
        return _print_cli_error(str(error) or "there is not enough memory for these data")
    except (ImportError, TypeError, ValueError) as error:
        if is_foreign(command) and not is_raised_by(error, command):
            note_origin(error, command, "command", "run")
            if isinstance(error, TypeError):  # nothing that the user gave: the author needs the place
                raise
        return _print_cli_error(" ".join([str(error), *getattr(error, "__notes__", ())]))
    except Exception as error:
        note_origin(error, command, "command", "run")
        raise


def _cli_parsers(
    commands: Mapping[str, Command], program: str
) -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    """Build the parser of the command line (CLI), and those of its commands by name."""
    parser = argparse.ArgumentParser(prog=program, description="Margin-distribution classifiers.")
    parser.add_argument("--version", action="version", version=f"mdlearn {sys.modules['mdlearn'].__version__}")
    choice = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, command in commands.items():
        own = choice.add_parser(
            name,
            help=command.summary,
            description=command.description or command.summary[:1].upper() + command.summary[1:],
            epilog=command.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter if command.epilog else argparse.HelpFormatter,
        )
        with ErrorNotes(command, "command", "add_arguments"):
            command.add_arguments(own)
    return parser, choice.choices


def _print_cli_error(message: str) -> int:
    """Print one line of the command line (CLI) to standard error and return the exit code 1."""
    print("error:", " ".join(message.split()), file=sys.stderr)
    return 1
