"""The contract of a subcommand of ``python -m mdlearn``."""

from __future__ import annotations

import argparse

BUILT_IN = ("demo", "fit", "predict", "verify", "compare", "objectives", "kernels", "solvers", "plugins", "new-plugin")
"""Names that no plugin can have, in the order of the list that ``--help`` prints."""


class UsageError(ValueError):
    """Error of a command whose arguments contradict each other: prints the sentence and the usage; exit code 2."""


class Command:
    """Base class of a command of ``python -m mdlearn``; a plugin brings its own through the hook ``mdlearn_commands``.

    Attributes
    ----------
    name : str
        What the user types: lower-case letters, digits, ``_`` and ``-``, a letter first.
    summary : str
        One line for the list of commands.
    description : str
        What ``--help`` says above the arguments; the summary where it is empty.
    epilog : str
        What ``--help`` says below them, line by line as it stands.

    Notes
    -----
    An instance is made without arguments when the command line is read. Import inside `run` what takes long to import.
    """

    name: str
    summary: str
    description: str = ""
    epilog: str = ""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments; a command without any leaves this out.

        Parameters
        ----------
        parser : argparse.ArgumentParser
            That of this command alone.
        """

    def run(self, given: argparse.Namespace) -> int | None:
        """Do the work.

        Parameters
        ----------
        given : argparse.Namespace
            The arguments that `add_arguments` declared.

        Returns
        -------
        int or None
            The exit code: 0, or 1 where there is no result. None stands for 0.

        Raises
        ------
        UsageError
            Arguments contradict each other; the exit code is 2.
        OSError, MemoryError, ImportError, TypeError, ValueError
            What is wrong with files or values: one line on standard error, and the exit code is 1. Where no ``raise``
            of the command's package or of mdlearn made the error, the line names command and plugin, and a TypeError
            keeps its traceback: it is a fault of the command.
        """
        raise NotImplementedError(f"command {self.name!r} needs a method run(given)")
