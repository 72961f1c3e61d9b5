"""Commands for studies on data sets: `demo` and `compare`."""

from __future__ import annotations

import argparse

from mdlearn.commands.options import add_force, kernel_option, names_option, positive_integer
from mdlearn.plugins.command import Command


class DemoCommand(Command):
    """Command for a study on real data: fit SVM and LDM, print a table and draw the margins."""

    name = "demo"
    summary = "fit SVM and LDM on real data, print a table and draw the margins"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--output", default=None, metavar="DIR", help="folder of the plot (default: the current one)"
        )
        add_force(parser, "a picture of the same name that is not of an earlier demo")

    def run(self, given: argparse.Namespace) -> int:
        from mdlearn.experiments.demo import run_demo

        return run_demo(given.output, given.force)


class CompareCommand(Command):
    """Command for a study of a folder: fit every objective on every data set."""

    name = "compare"
    summary = "fit every objective on every data set of a folder and print one table"
    description = (
        "Fit every objective, with its default parameters, on halves of every data set of a folder: accuracy, area "
        "under the ROC curve (two classes) or macro F1 (more) on the other halves, certified gap, seconds, and average "
        "ranks."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--data",
            required=True,
            metavar="DIR",
            help="folder of .npz, CSV (labels in the last column) and svmlight files",
        )
        parser.add_argument("--objectives", type=names_option, metavar="A,B", help="default: all, see `objectives`")
        parser.add_argument("--sets", type=names_option, metavar="A,B", help="names of data sets (default: all of DIR)")
        parser.add_argument(
            "--repeats", type=positive_integer, default=3, metavar="N", help="random splits (default: %(default)s)"
        )
        parser.add_argument("--seed", type=int, default=0, help="seed of splits and fits (default: %(default)s)")
        parser.add_argument(
            "--kernel", default="linear", type=kernel_option, help="see `kernels` (default: %(default)s)"
        )
        parser.add_argument(
            "--time-limit", type=float, default=5.0, metavar="SECONDS", help="per fit (default: %(default)g)"
        )
        parser.add_argument(
            "--max-rows",
            type=positive_integer,
            default=2000,
            metavar="N",
            help="rows used of a set (default: %(default)s)",
        )
        parser.add_argument(
            "--jobs", type=positive_integer, default=1, metavar="N", help="processes (default: %(default)s)"
        )
        parser.add_argument("--format", default="text", choices=("text", "csv", "json"), help="default: %(default)s")
        parser.add_argument("--out", metavar="FILE", help="file of the table (default: standard output)")
        add_force(parser, "FILE if it exists")

    def run(self, given: argparse.Namespace) -> int:
        from mdlearn.experiments.compare import run_compare

        return run_compare(given)
