"""Command `fit` for fitting a model to a file of rows."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from typing import Any

import numpy as np

from mdlearn.api import fit
from mdlearn.commands.options import add_file_options, add_force, folds_option, kernel_option, setting_option
from mdlearn.data.features.kernels import ARGUMENTS, DEFAULTS
from mdlearn.files.reading import ReadingOptions, read_for_fit
from mdlearn.files.tables import Table
from mdlearn.model.file.persistence import is_model_file, save
from mdlearn.model.model import Model
from mdlearn.objectives.base import FIT_ARGUMENTS
from mdlearn.output_files import OutputFile
from mdlearn.plugins.command import Command, UsageError
from mdlearn.selection.cross_validation import cross_validate


class FitCommand(Command):
    """Command for fitting: fit a model on a file of rows and save it."""

    name = "fit"
    summary = "fit a model on a CSV or svmlight file and save it"
    description = "Fit a model on a CSV or svmlight file, print its certificate and save it."
    epilog = """\
examples:
  %(prog)s heart.csv -o heart.npz --target disease
  %(prog)s a9a.svm.bz2 -o a9a.npz --objective svm --param C=0.1 --kernel rbf --param gamma=0.05

exit codes: 0 done, 1 something is wrong with files or parameters, 2 wrong usage, 130 Ctrl-C"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "data",
            metavar="DATA",
            help="CSV file, or svmlight file (its columns count from 1, or from 0 if index 0 occurs)",
        )
        parser.add_argument(
            "-o", "--output", required=True, metavar="MODEL", help="file of the model, for example m.npz"
        )
        add_force(parser, "MODEL even if it exists and is no model of mdlearn")
        parser.add_argument("--objective", default="ldm", help="see `objectives` (default: %(default)s)")
        parser.add_argument(
            "--param",
            action="append",
            default=[],
            type=setting_option,
            metavar="NAME=VALUE",
            help="hyper-parameter of the objective or the kernel, such as C=10 or gamma=0.5; may be repeated",
        )
        parser.add_argument(
            "--kernel", default="linear", type=kernel_option, help="see `kernels` (default: %(default)s)"
        )
        parser.add_argument("--bias", choices=("none", "regularized", "free"), help="default: the objective's own")
        parser.add_argument("--solver", default="auto", help="see `solvers` (default: %(default)s)")
        parser.add_argument(
            "--solver-option",
            action="append",
            default=[],
            type=setting_option,
            metavar="NAME=VALUE",
            help="setting of the engine; may be repeated",
        )
        parser.add_argument("--class-weight", choices=("balanced",), help="give every class the same total weight")
        parser.add_argument("--tol", type=float, default=1e-6, help="relative gap to reach (default: %(default)g)")
        parser.add_argument("--max-iter", type=int, metavar="N", help="most reports of the engine per problem")
        parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="stop then with the best model so far")
        parser.add_argument("--seed", type=int, help="seed of random choices (default: 0)")
        parser.add_argument(
            "--threads", type=int, metavar="N", help="threads of large works and of classes side by side"
        )
        parser.add_argument("--float32", action="store_true", help="keep values as 32-bit floats: half the memory")
        parser.add_argument(
            "--features", type=int, metavar="N", help="columns of a svmlight file (default: the largest in it)"
        )
        add_file_options(parser, "default: the last column")
        parser.add_argument(
            "--cv", type=folds_option, metavar="K", help="print the cross-validated score of K folds, too"
        )
        parser.add_argument(
            "-v", "--verbose", action="count", default=0, help="progress on standard error; -vv: every report"
        )

    def run(self, given: argparse.Namespace) -> int:
        for option in ("param", "solver_option"):
            names = [name for name, _ in getattr(given, option)]
            for name in names:
                if names.count(name) > 1:
                    raise UsageError(f"--{option.replace('_', '-')} gives {name} more than once")
                if option == "param" and name in FIT_ARGUMENTS.difference(DEFAULTS, ARGUMENTS):
                    raise UsageError(f"{name} is not a hyper-parameter; see the options of fit")
        if given.features is not None and given.features < 1:
            raise UsageError(f"--features needs to be at least 1; got {given.features}")
        # Before the work, not after.
        OutputFile(given.output, reads=[given.data], replaces=is_model_file, force=given.force)
        options = ReadingOptions(given.data_format, given.delimiter, given.header, given.target, given.features)
        table = read_for_fit(given.data, options, np.float32 if given.float32 else np.float64)
        if given.verbose:
            values = f", {table.X.nnz} values" if hasattr(table.X, "nnz") else ""
            print(f"read {given.data}: {table.X.shape[0]} rows, {table.X.shape[1]} columns{values}", file=sys.stderr)
        call = _fit_command_arguments(given)
        started = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = fit(given.objective, table.named, table.y, **call)
            seconds = time.perf_counter() - started
            judged = cross_validate(given.objective, table.X, table.y, cv=given.cv, **call) if given.cv else None
        for warning in caught:
            print(f"warning: {warning.message}", file=sys.stderr)
        # How columns were found and numbers rounded has to be the same at predict.
        save(model, given.output, {**table.notes, "float32": given.float32})
        lines = _fit_command_lines(given, table, model, seconds)
        if judged is not None:
            scores = judged.scores[~np.isnan(judged.scores)]
            note = "" if scores.shape[0] == given.cv else f"; {scores.shape[0]} folds were finished"
            lines[f"{given.cv}-fold {judged.scoring}"] = f"{judged.mean:.6g} +- {judged.std:.2g}{note}"
        print("\n".join(f"{title + ':':<19}{text}" for title, text in lines.items()))
        return 0


def _fit_command_arguments(given: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments that the commands for fitting and for cross-validation share."""
    return {
        "solver": given.solver,
        "solver_options": dict(given.solver_option),
        "kernel": given.kernel,
        "bias": given.bias,
        "class_weight": given.class_weight,
        "tol": given.tol,
        "max_iter": given.max_iter,
        "time_limit": given.time_limit,
        "random_state": given.seed,
        "n_threads": given.threads,
        "verbose": given.verbose,
        **dict(given.param),
    }


def _fit_command_lines(given: argparse.Namespace, table: Table, model: Model, seconds: float) -> dict[str, str]:
    """Texts that the command for fitting prints about a fit, by title."""
    proof = model.certificate
    params = (f"{name}={x:.6g}" if isinstance(x, float) else f"{name}={x}" for name, x in model.params.items())
    shape = f"{table.X.shape[0]} rows, {table.X.shape[1]} columns"
    return {
        "data": f"{given.data}: {shape}, {len(model.classes_) or 'no'} labels",
        "model": ", ".join([model.objective, *params]),
        "kernel, bias": f"{model.kernel.name}, {model.bias}",
        "engine": f"{model.solver} ({model.solver_reason})",
        "objective": f"{proof.objective:.10g}",
        "lower bound": f"{proof.lower_bound:.10g}",
        "relative gap": f"{proof.gap:.3g} ({proof.kind}; tol {proof.tol:g})",
        "converged": proof.verdict,
        "iterations": f"{model.n_iter}",
        "seconds": f"{seconds:.3f}",
        f"training {model.measure}": f"{model.score(table.X, table.y):.6g}",
        "saved to": given.output,
    }
