"""``python -m mdlearn reproduce NAME``: run what is left of a study, and write the report."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mdlearn import Command
from mdlearn.extend import add_force, check_folder, positive_integer, seed
from mdlearn_papers.documents import write
from mdlearn_papers.index import EXPERIMENTS
from mdlearn_papers.running import run
from mdlearn_papers.sources import Sets
from mdlearn_papers.store import RECORDS, Store
from mdlearn_papers.studies import Settings

DEFAULT_DATA = "data"
"""Folder of data sets that is looked for in the current one."""


class Reproduce(Command):
    """Run a table or figure of the papers again."""

    name = "reproduce"
    summary = "run a table or figure of the papers again and write a report"
    description = (
        "Run the study behind a table or figure of the papers, as far as it is not done yet, and write a report as "
        "Markdown and HTML, with figures as PNG. `reproduce list` lists the names."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "name", metavar="NAME", help="of the table or figure, such as uldm-table1; `list` lists them"
        )
        parser.add_argument("--data", metavar="DIR", help="folder of the data sets (default: data, if there is one)")
        parser.add_argument(
            "--output",
            default="reproduction",
            metavar="DIR",
            help="folder of records and reports (default: %(default)s)",
        )
        add_force(parser, "files of that folder that are not of an earlier run")
        parser.add_argument("--quick", action="store_true", help="a smoke run: few sets, splits and grid points")
        parser.add_argument(
            "--report", action="store_true", help="write the report of what has been run, and run nothing"
        )
        parser.add_argument(
            "--jobs", type=positive_integer, default=1, metavar="N", help="processes (default: %(default)s)"
        )
        parser.add_argument("--seed", type=seed, default=0, help="seed of splits and fits (default: %(default)s)")

    def run(self, given: argparse.Namespace) -> int:
        """Reproduce one table or figure; after Ctrl-C the report is of what there is."""
        if given.name == "list":
            width = max(map(len, EXPERIMENTS))
            print(*(f"{name:<{width}}  {one.title}" for name, one in EXPERIMENTS.items()), sep="\n")
            return 0
        if given.name not in EXPERIMENTS:
            raise ValueError(f"there is no table or figure {given.name!r}; known are: {', '.join(EXPERIMENTS)}")
        if given.data is not None and not Path(given.data).is_dir():
            raise ValueError(f"there is no folder {given.data}; give the one with the data sets")
        experiment, settings = EXPERIMENTS[given.name], Settings(given.quick, given.seed)
        sets = Sets(given.data or DEFAULT_DATA)
        folder = Path(given.output) / (experiment.study.name + ("-quick" if given.quick else ""))
        begun = (folder / RECORDS).is_file()
        if given.report and not begun:
            raise ValueError(f"nothing of {given.name} has been run in {given.output}; without --report it is run")
        check_folder(folder, "give another --output, or --force to overwrite files there", own=begun, force=given.force)
        store = Store(folder, experiment.study, settings)
        try:
            if not given.report:
                run(given.name, store, sets, settings, given.jobs)
        finally:
            records = store.records()
            if records:
                files = write(experiment.report(records, sets, settings), folder, given.name)
                print(*files, sep="\n")
        failed = [record for record in records if not record.values]
        for record in failed[:5]:
            print(f"no figures of {record.method} on {record.data}: {record.note}", file=sys.stderr)
        if not records:
            print("none of the data sets are there; give their folder with --data", file=sys.stderr)
        return 0 if records else 1
