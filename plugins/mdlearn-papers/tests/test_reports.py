"""Reports of the papers' tables: Markdown, HTML, pictures, and what is said of two figures."""

from __future__ import annotations

import math
from html.parser import HTMLParser

import numpy as np
import pytest
from mdlearn_papers import printed
from mdlearn_papers.comparing import (
    Comparison,
    Line,
    certificates,
    errors_away,
    remarks,
    scores,
)
from mdlearn_papers.documents import Heading, Picture, Report, Table, write
from mdlearn_papers.printed import Figures
from mdlearn_papers.sources import Sets
from mdlearn_papers.studies import Record
from scipy.stats import t as student

from mdlearn import selection

ODD = "a | b < c <b>&amp; \n [x]"
VOID = {"meta", "img"}


class Page(HTMLParser):
    """Cells of tables, paragraphs and pictures; a tag that is closed out of turn is an error."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tables, self.told, self.images = [], [], {}, []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        if tag == "img":
            self.images.append(dict(attrs))
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag not in VOID:
            self.open.append(tag)
            self.text = ""

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag in ("td", "th"):
            self.tables[-1][-1].append(self.text)
        else:
            self.told.setdefault(tag, []).append(self.text)

    def handle_data(self, data):
        self.text = getattr(self, "text", "") + data


def cells(line):
    """Cells of a line of a Markdown table."""
    assert line.startswith("| ") and line.endswith(" |")
    whole = line[2:-2].replace("\\|", "\0")
    return [cell.strip().replace("\0", "|") for cell in whole.split(" | ")]


def drawn(figure):
    figure.subplots().plot([0, 1], [1, 0])


def test_markdown_and_html(tmp_path):
    pytest.importorskip("matplotlib")
    table = Table(["data", "x|y", "<z>"], [["one", "1", ODD], ["two", "", "<2"]], "p < 0.05")
    blocks = [ODD, Heading("A <heading>"), table, Picture("shown", drawn, "caption ] of <it>")]
    files = write(Report("Title & more", blocks), tmp_path, "name")
    assert [file.name for file in files] == ["name.md", "name.html", "shown.png"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["name.html", "name.md", "shown.png"]
    text = files[0].read_text(encoding="utf-8")
    paragraphs = text.rstrip("\n").split("\n\n")
    assert paragraphs[:3] == ["# Title & more", "a | b < c &lt;b>&amp; [x]", "## A &lt;heading>"]
    lines = paragraphs[3].splitlines()
    assert [len(cells(line)) for line in lines] == [3] * 4
    assert cells(lines[0]) == ["data", "x|y", "&lt;z>"] and cells(lines[1]) == ["---", "---:", "---:"]
    assert cells(lines[2]) == ["one", "1", "a | b < c &lt;b>&amp; [x]"] and lines[3] == "| two |  | <2 |"
    assert paragraphs[4:] == ["p < 0.05", "![caption \\] of &lt;it>](shown.png)", "caption ] of &lt;it>"]

    page = Page(files[1].read_text(encoding="utf-8"))
    assert page.told["h1"] == page.told["title"] == ["Title & more"] and page.told["h2"] == ["A <heading>"]
    assert page.tables == [[["data", "x|y", "<z>"], ["one", "1", ODD], ["two", "", "<2"]]]
    assert ODD in page.told["p"] and "p < 0.05" in page.told["p"] and "caption ] of <it>" in page.told["p"]
    assert page.images == [{"src": "shown.png", "alt": "caption ] of <it>"}]
    assert files[2].read_bytes().startswith(b"\x89PNG")


def test_pictures_are_the_same_every_time(tmp_path):
    pytest.importorskip("matplotlib")
    report = Report("x", [Picture("one", drawn, "")])
    first = write(report, tmp_path, "a")[2].read_bytes()
    assert write(report, tmp_path, "a")[2].read_bytes() == first


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    files = write(Report("x", [Picture("one", drawn, "caption")]), tmp_path, "a")
    assert [file.name for file in files] == ["a.md", "a.html"]
    assert all("needs matplotlib, which is not installed" in file.read_text() for file in files)


def test_standard_errors_by_hand():
    ours, theirs = np.array([0.7, 0.8, 0.9, 0.8]), Figures(0.75, 0.05, 30)
    variance = sum((x - 0.8) ** 2 for x in ours) / 3
    assert errors_away(ours, theirs) == pytest.approx((0.8 - 0.75) / math.sqrt(variance / 4 + 0.05**2 / 30))
    assert math.isnan(errors_away(ours[:1], theirs)) and math.isnan(errors_away(ours, Figures(0.75, math.nan, 30)))
    assert math.isnan(errors_away(np.array([0.8, 0.8]), Figures(0.8, 0.0, 30)))
    assert errors_away(np.array([0.8, 0.8]), Figures(0.7, 0.1, 25)) == pytest.approx(0.1 / 0.02)


def recorded(data, method, values, **more):
    return [Record(data, method, i, {"accuracy": value}, **more) for i, value in enumerate(values)]


REFERENCE = [0.70, 0.72, 0.71, 0.73, 0.69]
BETTER = [0.80, 0.81, 0.80, 0.83, 0.80]
NOISY = [0.80, 0.61, 0.85, 0.60, 0.72]
RECORDS = [
    *recorded("bupa", "A", REFERENCE, fits=3, converged=3, gap=1e-8, seconds=1.0),
    *recorded("bupa", "B", BETTER, fits=2, converged=1, gap=1e-3, seconds=0.5),
    *recorded("bupa", "C", NOISY),
    *recorded("vote", "A", BETTER, fits=3, converged=3, gap=1e-7, seconds=1.0),
    *recorded("vote", "B", REFERENCE),
    *recorded("vote", "C", BETTER),
]
LINES = (Line("bupa", "bupa"), Line("votes", "vote", "other rows"), Line("third", None, "could not be had"))
PRINTED = {
    ("bupa", "A"): Figures(71.0, 2.0, 30),
    ("bupa", "B"): Figures(60.0, 2.0, 30, "better"),
    ("votes", "B"): Figures(71.0, 2.0, 30, "worse"),
    ("third", "A"): Figures(50.0, 2.0, 30),
}


def compared(printed=PRINTED, test=selection.paired_test):
    return Comparison(LINES, ["A", "B", "C"], printed, "A", test, unit=100.0)


def test_a_table_with_printed_figures():
    table = compared().table(scores(RECORDS, "accuracy"))
    assert table.header == ["data", "A", "A printed", "A diff/SE", "B", "B printed", "B diff/SE", "C"]
    away = (71.0 - 71.0, (80.8 - 60.0) / math.sqrt(100**2 * np.var(BETTER, ddof=1) / 5 + 4 / 30))
    assert table.rows[0][:4] == ["bupa", "71.00 ± 1.58", "71.00 ± 2.00", f"{away[0]:+.1f}"]
    assert table.rows[0][4:] == ["80.80 ± 1.30", "60.00 ± 2.00", f"{away[1]:+.1f}", "71.60 ± 11.15"]
    assert table.rows[1][0] == "votes *" and table.rows[1][2:4] == ["-", "-"]
    assert table.rows[2] == ["third *", "-", "50.00 ± 2.00", "-", "-", "-", "-", "-"]
    assert "over 5 splits" in table.caption and "diff/SE" in table.caption
    plain = compared({}).table(scores(RECORDS[:7], "accuracy"))
    assert plain.header == ["data", "A", "B"] and "diff/SE" not in plain.caption and "*: see below" in plain.caption
    assert "over 2 to 5 splits" in plain.caption
    assert compared().table(scores([], "accuracy")).header == ["data", "A printed", "B printed"]


@pytest.mark.parametrize("test", [selection.paired_test, selection.welch_test])
def test_outcomes_by_hand(test):
    table = compared(test=test).outcomes(scores(RECORDS, "accuracy"))
    assert table.header == ["method", "ours", "printed"]
    a, c = np.array(REFERENCE), np.array(NOISY)
    if test is selection.paired_test:
        d = c - a
        p = 2 * student.sf(abs(d.mean()) / math.sqrt(d.var(ddof=1) / 5), 4)
    else:
        parts = np.array([a.var(ddof=1) / 5, c.var(ddof=1) / 5])
        p = 2 * student.sf(abs(c.mean() - a.mean()) / math.sqrt(parts.sum()), parts.sum() ** 2 / (parts**2 / 4).sum())
    assert p > 0.05
    # B wins on bupa and loses on votes; C is no different on bupa, and the same on votes.
    assert table.rows == [["B", "1/0/1", "1/0/1"], ["C", "0/2/0", "-"]]
    assert test.__name__ in table.caption
    assert compared({}, test).outcomes(scores(RECORDS, "accuracy")).header == ["method", "ours"]


def test_tests_compare_the_same_splits():
    """A split that one method lacks does not shift the others."""
    shift = [0.1, 0.9, 0.3, 0.7, 0.5]
    first = recorded("bupa", "A", shift)
    second = recorded("bupa", "B", [x + 0.01 + 0.001 * i for i, x in enumerate(shift)])
    for lacking in ([], [first[0]], [second[1]], [first[4], second[0]]):
        found = scores([one for one in (*reversed(second), *first) if one not in lacking], "accuracy")
        ours, theirs = found.paired(("bupa", "B"), ("bupa", "A"))
        assert ours.shape[0] == 5 - len(lacking) and ((ours - theirs) > 0.009).all()
        assert compared({}).outcomes(found).rows[0] == ["B", "1/0/0"]
    none = scores(first, "accuracy").paired(("bupa", "A"), ("bupa", "B"))
    assert none[0].shape == none[1].shape == (0,)
    one = scores([first[0], second[0]], "accuracy")
    assert compared({}).outcomes(one).rows == [["B", "0/0/0"], ["C", "0/0/0"]]


def test_standings_by_hand():
    table = compared().standings(scores(RECORDS, "accuracy"))
    # Means: bupa 71.0, 80.8, 71.6; votes 80.8, 71.0, 80.8.
    assert table.header == ["method", "average", "printed average", "average rank", "best", "second", "worst"]
    assert table.rows == [
        ["A", "75.90", "-", "2.25", "1", "0", "1"],
        ["B", "75.90", "65.50", "2.00", "1", "0", "1"],
        ["C", "76.20", "-", "1.75", "1", "1", "0"],
    ]
    assert compared().standings(scores([], "accuracy")).rows == []


def test_what_lies_outside():
    text = compared().outside(scores(RECORDS, "accuracy"))
    assert text.startswith("Of 2 figures of sets that are the paper's, 1 lie") and "bupa B (+" in text
    near = compared({("bupa", "A"): Figures(71.0, 2.0, 30)}).outside(scores(RECORDS, "accuracy"))
    assert near.startswith("All 1 figures") and compared({}).outside(scores(RECORDS, "accuracy")) == ""


def test_remarks_and_certificates(tmp_path):
    heading, table = remarks([*LINES, Line("iris", "iris")], Sets(str(tmp_path)))
    assert heading.text == "Sets that are missing or differ"
    assert table.rows[0] == ["bupa", "bupa", "missing from the folder of data sets"]
    assert table.rows[1] == ["votes", "vote", "missing from the folder of data sets; other rows"]
    assert table.rows[2] == ["third", "-", "could not be had"]
    failed = Record("bupa", "C", 9, note="no memory")
    rows = {row[0]: row[1:] for row in certificates([*RECORDS, failed]).rows}
    assert rows["A"] == ["30", "30", "1.0e-07", "10.0", "0"]
    assert rows["B"] == ["10", "5", "1.0e-03", "2.5", "0"]
    assert rows["C"] == ["0", "0", "-", "0.0", "1"]


def test_printed_tables():
    found = printed.means("ldm_table2_linear", 30)
    assert all(isinstance(one, Figures) and one.n == 30 and 0 < one.mean <= 1 for one in found.values())
    assert {one.versus for one in found.values()} <= {"", "better", "tie", "worse"}
    rows = printed.table("uldm_table3_parameters")
    assert len(rows) == 9 and all(rows[0])
