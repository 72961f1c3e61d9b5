"""Options of commands: their types, and those that several commands share."""

from __future__ import annotations

import argparse
import re
from typing import Any

SETTING_WORDS = {"true": True, "false": False, "none": None}


def add_force(one: argparse.ArgumentParser, what: str) -> None:
    """Add the argument `--force` to a command, and say in its help that it overwrites `what`.

    `mdlearn.extend.OutputFile` does what that help says, and needs ``force=given.force`` for it.
    """
    one.add_argument("--force", action="store_true", help=f"overwrite {what}; never what the command reads")


def add_file_options(one: argparse.ArgumentParser, target: str) -> None:
    """Add the arguments of a command that say how DATA is read."""
    file = one.add_argument_group(
        "how DATA is read", "By default found out from the file. gzip and bzip2 are unpacked, whatever the name is."
    )
    file.add_argument("--data-format", choices=("csv", "svmlight"), help="default: by the name, else by the content")
    file.add_argument(
        "--target", type=column_option, metavar="COLUMN", help=f"CSV: name or number (from 1) of the labels ({target})"
    )
    file.add_argument("--delimiter", type=delimiter_option, metavar="CHAR", help="CSV: comma, semicolon or tab")
    file.add_argument(
        "--header", type=yes_or_no_option, metavar="yes|no", help="CSV: whether the first line names the columns"
    )


def column_option(text: str) -> str:
    """Argument of a command: name or number of a column; numbers count from 1."""
    if re.fullmatch(r"-[0-9]+", text):
        raise argparse.ArgumentTypeError(f"{text} is no column; they count from 1, and the last one is the default")
    return text


def names_option(text: str) -> list[str]:
    """Argument of a command: names with commas between them."""
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form A,B,C with each name once")
    return names


def kernel_option(text: str) -> str:
    """Argument of a command: a kernel of rows; its name is looked up later, as for objectives."""
    if text == "precomputed":
        raise argparse.ArgumentTypeError("a file holds rows, no kernel matrix; give another kernel than precomputed")
    return text


def positive_integer(text: str) -> int:
    """Argument of a command: a whole number >= 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number >= 1")
    return int(text)


def seed(text: str) -> int:
    """Argument of a command: a whole number >= 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number >= 0")
    return int(text)


def folds_option(text: str) -> int:
    """Argument of a command: a whole number >= 2."""
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of folds, 2 or more")
    return int(text)


def delimiter_option(text: str) -> str:
    """Argument of a command: one of the three delimiters, by itself or by its name."""
    known = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t"}
    if text not in known and text not in known.values():
        raise argparse.ArgumentTypeError(f"{text!r} is not comma, semicolon or tab")
    return known.get(text, text)


def yes_or_no_option(text: str) -> bool:
    """Argument of a command: yes or no, as a boolean."""
    if text not in ("yes", "no"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither yes nor no")
    return text == "yes"


def setting_option(text: str) -> tuple[str, Any]:
    """Argument of a command: NAME=VALUE; values are integers, floats (inf too), true, false, none, or else strings."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    for number in (int, float):
        try:
            return name, number(value)
        except ValueError:
            pass
    return name, SETTING_WORDS.get(value.lower(), value)
