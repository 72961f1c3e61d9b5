"""What the commands `fit`, `predict` and `compare` can be told."""

from __future__ import annotations

import argparse
import re
from typing import Any

WORDS = {"true": True, "false": False, "none": None}
FIT_EXAMPLES = """\
examples:
  %(prog)s heart.csv -o heart.npz --target disease
  %(prog)s a9a.svm.bz2 -o a9a.npz --objective svm --param C=0.1 --kernel rbf --param gamma=0.05

exit codes: 0 done, 1 something is wrong with files or parameters, 2 wrong usage, 130 Ctrl-C"""
PREDICT_EXAMPLES = """\
examples:
  %(prog)s heart.npz patients.csv -o diagnoses.txt
  %(prog)s a9a.npz a9a.t --data-format svmlight --scores"""


def add_demo(commands: Any) -> None:
    """Add the arguments of `demo`."""
    one = commands.add_parser("demo", help="fit SVM and LDM on real data, print a table and draw the margins")
    one.add_argument("--output", default=None, metavar="DIR", help="folder of the plot (default: the current one)")
    add_force(one, "a picture of the same name that is not of an earlier demo")


def add_fit(commands: Any) -> None:
    """Add the arguments of `fit`."""
    one = commands.add_parser(
        "fit",
        help="fit a model on a CSV or svmlight file and save it",
        description="Fit a model on a CSV or svmlight file, print its certificate and save it.",
        epilog=FIT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    one.add_argument(
        "data",
        metavar="DATA",
        help="CSV file, or svmlight file (its columns count from 1, or from 0 if index 0 occurs)",
    )
    one.add_argument("-o", "--output", required=True, metavar="MODEL", help="file of the model, for example m.npz")
    add_force(one, "MODEL even if it exists and is no model of mdlearn")
    one.add_argument("--objective", default="ldm", help="see `objectives` (default: %(default)s)")
    one.add_argument(
        "--param",
        action="append",
        default=[],
        type=_setting,
        metavar="NAME=VALUE",
        help="hyper-parameter of the objective or the kernel, such as C=10 or gamma=0.5; may be repeated",
    )
    one.add_argument("--kernel", default="linear", type=_kernel, help="see `kernels` (default: %(default)s)")
    one.add_argument("--bias", choices=("none", "regularized", "free"), help="default: the objective's own")
    one.add_argument("--solver", default="auto", help="see `solvers` (default: %(default)s)")
    one.add_argument(
        "--solver-option",
        action="append",
        default=[],
        type=_setting,
        metavar="NAME=VALUE",
        help="setting of the engine; may be repeated",
    )
    one.add_argument("--class-weight", choices=("balanced",), help="give every class the same total weight")
    one.add_argument("--tol", type=float, default=1e-6, help="relative gap to reach (default: %(default)g)")
    one.add_argument("--max-iter", type=int, metavar="N", help="most reports of the engine per problem")
    one.add_argument("--time-limit", type=float, metavar="SECONDS", help="stop then with the best model so far")
    one.add_argument("--seed", type=int, help="seed of random choices (default: 0)")
    one.add_argument("--threads", type=int, metavar="N", help="threads of BLAS and of classes side by side")
    one.add_argument("--float32", action="store_true", help="keep values as 32-bit floats: half the memory")
    one.add_argument(
        "--features", type=int, metavar="N", help="columns of a svmlight file (default: the largest in it)"
    )
    _add_file_options(one, "default: the last column")
    one.add_argument("--cv", type=_folds, metavar="K", help="print the cross-validated score of K folds, too")
    one.add_argument("-v", "--verbose", action="count", default=0, help="progress on standard error; -vv: every report")


def add_predict(commands: Any) -> None:
    """Add the arguments of `predict`."""
    one = commands.add_parser(
        "predict",
        help="predict the rows of a CSV or svmlight file with a saved model",
        description="Write one label per row of a file. Where the file has labels, too, accuracy goes to standard\n"
        "output with -o, else to standard error. Columns of a CSV file are found by the names in its\n"
        "header, if the model was fitted on a file with a header; else by position. Columns that a\n"
        "svmlight file lacks are empty.",
        epilog=PREDICT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    one.add_argument("model", metavar="MODEL", help="file that `fit` or Model.save wrote")
    one.add_argument("data", metavar="DATA", help="CSV or svmlight file, with labels or (CSV) without")
    one.add_argument("-o", "--output", metavar="FILE", help="file of the predictions (default: standard output)")
    add_force(one, "FILE if it exists")
    one.add_argument(
        "--scores", action="store_true", help="write decision values instead: one, or one per class in sorted order"
    )
    _add_file_options(one, "default: as at fit; without labels, there is no accuracy")


def _add_file_options(one: argparse.ArgumentParser, target: str) -> None:
    """Options that say how DATA is read."""
    file = one.add_argument_group(
        "how DATA is read", "By default found out from the file. gzip and bzip2 are unpacked, whatever the name is."
    )
    file.add_argument("--data-format", choices=("csv", "svmlight"), help="default: by the name, else by the content")
    file.add_argument(
        "--target", type=_column, metavar="COLUMN", help=f"CSV: name or number (from 1) of the labels ({target})"
    )
    file.add_argument("--delimiter", type=_delimiter, metavar="CHAR", help="CSV: comma, semicolon or tab")
    file.add_argument("--header", type=_yes, metavar="yes|no", help="CSV: whether the first line names the columns")


def add_compare(commands: Any) -> None:
    """Add the arguments of `compare`."""
    one = commands.add_parser(
        "compare",
        help="fit every objective on every data set of a folder and print one table",
        description="Fit every objective, with its default parameters, on halves of every data set of a folder: "
        "accuracy, area under the ROC curve (two classes) or macro F1 (more) on the other halves, certified gap, "
        "seconds, and average ranks.",
    )
    one.add_argument(
        "--data",
        required=True,
        metavar="DIR",
        help="folder of .npz, CSV (labels in the last column) and svmlight files",
    )
    one.add_argument("--objectives", type=_names, metavar="A,B", help="default: all, see `objectives`")
    one.add_argument("--sets", type=_names, metavar="A,B", help="names of data sets (default: all of DIR)")
    one.add_argument("--repeats", type=_count, default=3, metavar="N", help="random splits (default: %(default)s)")
    one.add_argument("--seed", type=int, default=0, help="seed of splits and fits (default: %(default)s)")
    one.add_argument("--kernel", default="linear", type=_kernel, help="see `kernels` (default: %(default)s)")
    one.add_argument("--time-limit", type=float, default=5.0, metavar="SECONDS", help="per fit (default: %(default)g)")
    one.add_argument(
        "--max-rows", type=_count, default=2000, metavar="N", help="rows used of a set (default: %(default)s)"
    )
    one.add_argument("--jobs", type=_count, default=1, metavar="N", help="processes (default: %(default)s)")
    one.add_argument("--format", default="text", choices=("text", "csv", "json"), help="default: %(default)s")
    one.add_argument("--out", metavar="FILE", help="file of the table (default: standard output)")
    add_force(one, "FILE if it exists")


def add_reproduce(commands: Any) -> None:
    """Add the arguments of `reproduce`."""
    one = commands.add_parser(
        "reproduce",
        help="run a table or figure of the papers again and write a report",
        description="Run the study behind a table or figure of the papers, as far as it is not done yet, and write a "
        "report as Markdown and HTML, with figures as PNG. `reproduce list` lists the names.",
    )
    one.add_argument("name", metavar="NAME", help="of the table or figure, such as uldm-table1; `list` lists them")
    one.add_argument("--data", metavar="DIR", help="folder of the data sets (default: data, if there is one)")
    one.add_argument(
        "--output", default="reproduction", metavar="DIR", help="folder of records and reports (default: %(default)s)"
    )
    add_force(one, "files of that folder that are not of an earlier run")
    one.add_argument("--quick", action="store_true", help="a smoke run: few sets, splits and grid points")
    one.add_argument("--report", action="store_true", help="write the report of what has been run, and run nothing")
    one.add_argument("--jobs", type=_count, default=1, metavar="N", help="processes (default: %(default)s)")
    one.add_argument("--seed", type=_seed, default=0, help="seed of splits and fits (default: %(default)s)")


def add_force(one: argparse.ArgumentParser, what: str) -> None:
    """Add `--force`, which overwrites `what`; files that the command reads are never written to."""
    one.add_argument("--force", action="store_true", help=f"overwrite {what}; never what the command reads")


def _column(text: str) -> str:
    """Name or number of a column; numbers count from 1."""
    if re.fullmatch(r"-[0-9]+", text):
        raise argparse.ArgumentTypeError(f"{text} is no column; they count from 1, and the last one is the default")
    return text


def _names(text: str) -> list[str]:
    """Names with commas between them."""
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form A,B,C with each name once")
    return names


def _kernel(text: str) -> str:
    """A kernel of rows; whether there is one of this name is seen later, as for objectives."""
    if text == "precomputed":
        raise argparse.ArgumentTypeError("a file holds rows, no kernel matrix; give another kernel than precomputed")
    return text


def _count(text: str) -> int:
    """A whole number >= 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number >= 1")
    return int(text)


def _seed(text: str) -> int:
    """A whole number >= 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number >= 0")
    return int(text)


def _folds(text: str) -> int:
    """A whole number >= 2."""
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of folds, 2 or more")
    return int(text)


def _delimiter(text: str) -> str:
    """One of the three delimiters, by itself or by its name."""
    known = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t"}
    if text not in known and text not in known.values():
        raise argparse.ArgumentTypeError(f"{text!r} is not comma, semicolon or tab")
    return known.get(text, text)


def _yes(text: str) -> bool:
    if text not in ("yes", "no"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither yes nor no")
    return text == "yes"


def _setting(text: str) -> tuple[str, Any]:
    """NAME=VALUE; values are integers, floats (inf too), true, false, none, or else strings."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    for number in (int, float):
        try:
            return name, number(value)
        except ValueError:
            pass
    return name, WORDS.get(value.lower(), value)
