"""The command `predict`: labels for the rows of a file."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from mdlearn.commands.options import add_file_options, add_force
from mdlearn.files.reading import ReadingOptions, read_for_model
from mdlearn.model.model import Model
from mdlearn.output_files import OutputFile
from mdlearn.plugins.command import Command
from mdlearn.plugins.model_files import load_model_with_plugins


class PredictCommand(Command):
    """Command for predicting: predict the rows of a file with a saved model."""

    name = "predict"
    summary = "predict the rows of a CSV or svmlight file with a saved model"
    description = """\
Write one label per row of a file. Where the file has labels, too, accuracy goes to standard
output with -o, else to standard error. Columns of a CSV file are found by the names in its
header, if the model was fitted on a file with a header; else by position. Columns that a
svmlight file lacks are empty."""
    epilog = """\
examples:
  %(prog)s heart.npz patients.csv -o diagnoses.txt
  %(prog)s a9a.npz a9a.t --data-format svmlight --scores"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("model", metavar="MODEL", help="file that `fit` or Model.save wrote")
        parser.add_argument("data", metavar="DATA", help="CSV or svmlight file, with labels or (CSV) without")
        parser.add_argument("-o", "--output", metavar="FILE", help="file of the predictions (default: standard output)")
        add_force(parser, "FILE if it exists")
        parser.add_argument(
            "--scores", action="store_true", help="write decision values instead: one, or one per class in sorted order"
        )
        add_file_options(parser, "default: as at fit; without labels, there is no accuracy")

    def run(self, given: argparse.Namespace) -> int:
        reads, out = (given.model, given.data), None
        if given.output is not None:
            out = OutputFile(given.output, reads, force=given.force, streams=True)
        model, notes = load_model_with_plugins(given.model)
        options = ReadingOptions(given.data_format, given.delimiter, given.header, given.target)
        table = read_for_model(given.data, options, model, notes)
        X = table.X
        predicted = model.predict(X)
        if given.scores:
            scores = model.decision_function(X).reshape(X.shape[0], -1)
            lines = [" ".join(map(repr, row)) for row in scores.tolist()]
        else:
            lines = [str(label) for label in predicted.tolist()]
        text = "\n".join(lines) + "\n"
        if out is None:
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            out.write(text.encode())
        # On standard output, lines of predictions stay alone.
        print(predict_command_quality(model, X, table.y, predicted), file=sys.stderr if out is None else sys.stdout)
        return 0


def predict_command_quality(model: Model, X: Any, y: np.ndarray | None, predicted: np.ndarray) -> str:
    """Line of the command for predicting: accuracy or R^2, as far as the labels of the file allow."""
    if y is None:
        return f"{predicted.shape[0]} rows predicted; the file has no labels"
    if len(model.classes_):
        return predict_command_accuracy(model, predicted, y)
    if y.dtype.kind not in "iuf":
        return "R^2: not known; the labels of the file are no numbers"
    return f"R^2: {model.score(X, y):.6g}"


def predict_command_accuracy(model: Model, predicted: np.ndarray, y: np.ndarray) -> str:
    """Line of the command for predicting: share of right predictions, if the labels are the model's."""
    alike = (model.classes_.dtype.kind in "biuf") == (y.dtype.kind in "biuf")
    known = np.isin(y, model.classes_) if alike else np.zeros(y.shape[0], dtype=bool)
    if not known.any():
        return "accuracy: not known; the labels of the file are not those of the model"
    right = int((predicted == y).sum())
    strange = int((~known).sum())
    note = f"; {strange} have a label that the model does not know" if strange else ""
    return f"accuracy: {right / y.shape[0]:.6g} ({right} of {y.shape[0]} rows{note})"
