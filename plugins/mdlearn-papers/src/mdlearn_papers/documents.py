"""Reports as Markdown and HTML: headings, paragraphs, tables and pictures."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mdlearn.extend import replace_file


@dataclass(frozen=True)
class Heading:
    """A heading of the second level."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table of text; the first column is set to the left, the others to the right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""


@dataclass(frozen=True)
class Picture:
    """A figure in a file of its own.

    Attributes
    ----------
    name : str
        Of the file, without its end.
    draw : callable
        Draws into the matplotlib Figure that it is given.
    caption : str
    size : tuple of float
        Inches.
    """

    name: str
    draw: Callable[[Any], None]
    caption: str
    size: tuple[float, float] = (7.0, 4.5)


Block = Heading | Table | Picture | str
"""What a report is made of; a str is a paragraph."""


@dataclass(frozen=True)
class Report:
    """A title and what stands below it."""

    title: str
    blocks: Sequence[Block]


def write(report: Report, folder: Path, name: str) -> list[Path]:
    """Write NAME.md, NAME.html and the pictures; return the files.

    Without matplotlib pictures are left out, and the reports say so.
    """
    files = [folder / f"{name}.md", folder / f"{name}.html"]
    drawn: dict[str, str] = {}
    for block in report.blocks:
        if isinstance(block, Picture):
            drawn[block.name] = _save(block, folder / f"{block.name}.png")
            if drawn[block.name]:
                files.append(folder / drawn[block.name])
    for path, written in zip(files, (_markdown(report, drawn), _html(report, drawn))):
        replace_file(str(path), written.encode())
    return files


def _save(picture: Picture, path: Path) -> str:
    """Draw into a file; return its name, empty without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    figure = Figure(figsize=picture.size, layout="constrained")
    FigureCanvasAgg(figure)
    picture.draw(figure)
    replace_file(str(path), partial(figure.savefig, format="png", dpi=120, metadata={"Software": None}))
    return path.name


ABSENT = "(The figure needs matplotlib, which is not installed.)"


def _markdown(report: Report, drawn: dict[str, str]) -> str:
    parts = [f"# {_plain(report.title)}"]
    for block in report.blocks:
        if isinstance(block, Heading):
            parts.append(f"## {_plain(block.text)}")
        elif isinstance(block, Table):
            header, *rows = [[_plain(cell).replace("|", "\\|") for cell in row] for row in (block.header, *block.rows)]
            rule = ["---", *["---:"] * (len(header) - 1)]
            lines = ["| " + " | ".join(row) + " |" for row in (header, rule, *rows)]
            parts.append("\n".join(lines))
            parts += [_plain(block.caption)] if block.caption else []
        elif isinstance(block, Picture):
            name, caption = drawn[block.name], _plain(block.caption)
            within = caption.replace("[", "\\[").replace("]", "\\]")
            parts += [f"![{within}]({name})" if name else ABSENT, caption]
        else:
            parts.append(_plain(block))
    return "\n\n".join(parts) + "\n"


def _plain(text: str) -> str:
    """One line in which no ``<`` begins a tag."""
    return TAG.sub("&lt;", " ".join(text.split()))


TAG = re.compile(r"<(?=[A-Za-z/!?])")
STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:75em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0}th,td{padding:.25em .6em;border-bottom:1px solid #ccc;"
    "text-align:right;white-space:nowrap}th:first-child,td:first-child{text-align:left}img{max-width:100%}"
)


def _html(report: Report, drawn: dict[str, str]) -> str:
    told = html.escape
    parts = [f"<h1>{told(report.title)}</h1>"]
    for block in report.blocks:
        if isinstance(block, Heading):
            parts.append(f"<h2>{told(block.text)}</h2>")
        elif isinstance(block, Table):
            header = "".join(f"<th>{told(cell)}</th>" for cell in block.header)
            rows = "\n".join("<tr>" + "".join(f"<td>{told(cell)}</td>" for cell in row) + "</tr>" for row in block.rows)
            parts.append(f"<table>\n<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>")
            parts += [f"<p>{told(block.caption)}</p>"] if block.caption else []
        elif isinstance(block, Picture):
            name, caption = drawn[block.name], told(block.caption)
            parts.append(f'<p><img src="{told(name)}" alt="{caption}"></p>' if name else f"<p>{ABSENT}</p>")
            parts.append(f"<p>{caption}</p>")
        else:
            parts.append(f"<p>{told(block)}</p>")
    title = told(report.title)
    head = f'<meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body>\n' + "\n".join(parts) + "\n</body>\n</html>\n"
    )
