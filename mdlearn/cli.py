"""The command line: demo, fit, predict, compare, reproduce, objectives, kernels, solvers, plugins, new-plugin."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from mdlearn.commands.parsers import add_compare, add_demo, add_fit, add_predict, add_reproduce
from mdlearn.data.features.kernels import ARGUMENTS, DEFAULTS, FORMULAS, PARAMETERS
from mdlearn.errors import PluginWarning
from mdlearn.objectives.base import FIT_ARGUMENTS
from mdlearn.plugins.manager import list_plugins, registry

INTERRUPTED = 130
"""The shells' exit code after Ctrl-C: 128 + SIGINT."""


def main(arguments: Sequence[str] | None = None, program: str = "python -m mdlearn") -> int:
    """Run one command and return its exit code: 0, 1 for bad input, 2 for wrong usage, 130 for Ctrl-C."""
    parser = argparse.ArgumentParser(prog=program, description="Margin-distribution classifiers.")
    parser.add_argument("--version", action="version", version=f"mdlearn {sys.modules['mdlearn'].__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    add_demo(commands)
    add_fit(commands)
    add_predict(commands)
    add_compare(commands)
    add_reproduce(commands)
    commands.add_parser("objectives", help="list objectives with their formulas and parameters")
    commands.add_parser("kernels", help="list kernels with their formulas and parameters")
    commands.add_parser("solvers", help="list engines and the table behind solver='auto'")
    _add_plugins(commands)
    given = parser.parse_args(arguments)
    try:
        code = _run(given, commands.choices[given.command])
        sys.stdout.flush()  # here, so that a reader that has gone is noticed below
        return code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (a pipe into head). Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(given: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    if given.command == "demo":
        from mdlearn.experiments.demo import main as run_demo

        return run_demo(given.output, given.force)
    if given.command in ("fit", "predict", "compare", "reproduce"):
        return _on_files(given, parser)
    if given.command == "plugins":
        return _plugins(given.json)
    if given.command == "new-plugin":
        return _new_plugin(given.name, given.dir, given.native)
    return {"objectives": _objectives, "kernels": _kernels, "solvers": _solvers}[given.command]()


def _add_plugins(commands: Any) -> None:
    one = commands.add_parser("plugins", help="list installed plugins: version, what they provide, what is wrong")
    one.add_argument("--json", action="store_true", help="one JSON list, an object per entry point")
    one = commands.add_parser(
        "new-plugin",
        help="write a package with an objective of your own",
        description="Write a small package: an objective, its entry point, tests and a README, ready for pip.",
    )
    one.add_argument("name", metavar="NAME", help="name of the package and of its folder")
    one.add_argument("--dir", default=".", metavar="DIR", help="where that folder goes (default: the current one)")
    one.add_argument("--native", action="store_true", help="with a compiled loss (needs Cython and a C compiler)")


def _on_files(given: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Run a command on files; what is wrong with these or with parameters becomes one line on standard error."""
    for option in ("param", "solver_option") if given.command == "fit" else ():
        names = [name for name, _ in getattr(given, option)]
        for name in names:
            if names.count(name) > 1:
                parser.error(f"--{option.replace('_', '-')} gives {name} more than once")
            if option == "param" and name in FIT_ARGUMENTS.difference(DEFAULTS, ARGUMENTS):
                parser.error(f"{name} is not a hyper-parameter; see the options of fit")
    if given.command == "fit" and given.features is not None and given.features < 1:
        parser.error(f"--features needs to be at least 1; got {given.features}")
    try:
        if given.command == "compare":
            from mdlearn.experiments.compare import main as run
        elif given.command == "reproduce":
            from mdlearn.experiments.papers.command import main as run
        elif given.command == "fit":
            from mdlearn.commands.fitting import run_fit as run
        else:
            from mdlearn.commands.predicting import run_predict as run
        return run(given)
    except BrokenPipeError:
        raise
    except OSError as error:
        named = error.strerror and error.filename is not None
        return _fail(f"{error.filename}: {error.strerror}" if named else str(error))
    except MemoryError as error:
        return _fail(str(error) or "there is not enough memory for these data")
    except (ImportError, TypeError, ValueError) as error:
        return _fail(str(error))


def _fail(message: str) -> int:
    print("error:", " ".join(message.split()), file=sys.stderr)
    return 1


def _objectives() -> int:
    for name, cls in registry().objectives.items():
        note = "" if cls.task == "classification" else f" ({cls.task})"
        print(f"{name}: {cls.summary}{note}\n    minimise {cls.formula}")
        _parameters(cls)
    return 0


def _parameters(cls: Any) -> None:
    for parameter, declared in cls.parameters.items():
        told = declared.default
        told = f"{told:g}" if isinstance(told, (int, float)) else str(told)
        default = "" if callable(declared.default) else f" (default {told})"
        print(f"    {parameter}: {declared.doc}{default}")


def _kernels() -> int:
    for name, found in registry().kernels.items():
        if name in FORMULAS:
            told = ", ".join(f"{parameter} (default {DEFAULTS[parameter]})" for parameter in PARAMETERS[name])
            print(f"{name}: {FORMULAS[name]}" + (f"\n    {told}" if told else ""))
        else:
            print(f"{name}: {found.summary}")
            _parameters(found)
    return 0


def _solvers() -> int:
    from mdlearn.solvers.auto import RULES

    for name, cls in registry().solvers.items():
        options = ", ".join(f"{key}={value!r}" for key, value in cls.options.items())
        print(f"{name}: {cls.purpose}" + (f"\n    options: {options}" if options else ""))
    print("solver='auto' takes the first line that fits:")
    for rule in RULES:
        print(f"    {rule.solver:<10}{rule.reason}")
    return 0


def _plugins(json: bool) -> int:
    from mdlearn.plugins.records import as_json, as_lines

    # What plugins print while they are imported is not part of the list, and the list says what warnings would.
    with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)
        records = list_plugins()
    lines = [as_json(records)] if json else as_lines(records)
    print(*lines, sep="\n", end="\n" if lines else "")
    if not records:
        print("no plugins are installed", file=sys.stderr)
    return 0


def _new_plugin(name: str, folder: str, native: bool) -> int:
    from mdlearn.plugins.scaffold import new_plugin

    try:
        target = new_plugin(name, folder, native)
    except ValueError as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    how = "'.[test]'" if native else "-e '.[test]'"
    print(f"{target} written; in that folder run: pip install {how} && pytest")
    return 0
