"""The command `verify`: a model file against the data of its fit, by the independent checker."""

from __future__ import annotations

import argparse

import numpy as np

from mdlearn.commands.options import add_file_options
from mdlearn.files.reading import ReadingOptions, read_for_model
from mdlearn.plugins.command import Command
from mdlearn.plugins.model_files import load_model_with_plugins
from mdlearn.verifier.checker import print_verdict


class VerifyCommand(Command):
    """Command for verifying: check what a model file says by its numbers and the data of its fit."""

    name = "verify"
    summary = "check objective, lower bound and gap of a model file by the data of its fit"
    description = """\
Compute objective, lower bound and gap of a model file anew from its numbers and the data that it
was fitted on, by formulas that share no code with the fit (mdlearn/verifier/checker.py, one file
that needs NumPy alone), and print `agreed` (exit code 0), `refuted` and what differs (1), or why
this model cannot be checked (2)."""
    epilog = """\
examples:
  %(prog)s heart.npz heart.csv
  python mdlearn/verifier/checker.py heart.npz heart.csv"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("model", metavar="MODEL", help="file that `fit` or Model.save wrote")
        parser.add_argument("data", metavar="DATA", help="CSV or svmlight file that it was fitted on")
        parser.add_argument(
            "--weights", metavar="FILE", help="one number per row: sample weight times class weight (default: 1)"
        )
        add_file_options(parser, "default: as at fit")

    def run(self, given: argparse.Namespace) -> int:
        model, notes = load_model_with_plugins(given.model)
        options = ReadingOptions(given.data_format, given.delimiter, given.header, given.target)
        table = read_for_model(given.data, options, model, notes)
        if table.y is None:
            raise ValueError(f"{given.data} has no labels; give the file that the model was fitted on")
        X = table.X.toarray() if hasattr(table.X, "toarray") else table.X
        weights = None if given.weights is None else np.loadtxt(given.weights, ndmin=1)
        return print_verdict(given.model, X, table.y, weights)
