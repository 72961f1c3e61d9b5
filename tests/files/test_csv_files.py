"""CSV files as users have them: delimiters, headers, labels, quotes, encodings; read as the csv module reads them."""

import bz2
import csv
import gzip
import io
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mdlearn.files import packed
from mdlearn.files.reading import ReadingOptions, read_for_fit

X = np.array([[5.1, 3.5], [-4.9e-3, 3.0], [0.0, 7e300]])
Y = ["setosa", "virginica", "setosa"]


@pytest.fixture
def read(tmp_path):
    def read(content, name="a.csv", dtype=np.float64, **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_for_fit(str(path), ReadingOptions(**options), dtype)

    return read


def text(delimiter=",", header=True, end="\n", quoting=csv.QUOTE_MINIMAL):
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=quoting)
    if header:
        writer.writerow(["length", "width", "species"])
    writer.writerows([*row, label] for row, label in zip(X.tolist(), Y))
    return out.getvalue()


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
def test_what_the_csv_module_writes(read, delimiter, header, end, quoting):
    content = text(delimiter, header, end, quoting)
    for given in (content, content.rstrip(end), "\ufeff" + content, content + end):
        table = read(given)
        assert_array_equal(table.X, X)
        assert table.y.tolist() == Y
        assert table.names == (("length", "width") if header else None)
        assert table.notes == {"place": 2} | ({"target": "species"} if header else {})


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.csv.bz2", "a.gz", "a", "a.data"])
def test_packing_is_seen_by_the_content(read, name):
    for pack in (gzip.compress, bz2.compress, bytes):
        assert_array_equal(read(pack(text().encode()), name).X, X)


def test_the_column_of_labels(read):
    content = "a,b,c\n1,2,3\n4,5,6\n"
    for target, place in (("a", 0), ("b", 1), ("2", 1), ("3", 2), ("-1", 2), ("-3", 0), (None, 2)):
        table = read(content, target=target)
        others = [j for j in range(3) if j != place]
        assert_array_equal(table.X, np.array([[1, 2, 3], [4, 5, 6]])[:, others])
        assert_array_equal(table.y, [1 + place, 4 + place])
        assert table.names == tuple("abc"[j] for j in others) and table.notes["target"] == "abc"[place]
    # A name is a name before it is a number.
    assert_array_equal(read("3,2,x\n0,1,7\n0,4,7\n", target="3", header=True).y, [0, 0])


@pytest.mark.parametrize(
    "labels, expected, kind",
    [
        (["1", "-1", "1"], [1, -1, 1], "i"),
        (["1.0", "2", "1e0"], [1, 2, 1], "i"),
        (["0.5", "2", "0.50"], [0.5, 2, 0.5], "f"),
        (["9007199254740993", "9007199254740992", "1"], [9007199254740993, 9007199254740992, 1], "i"),
        (["1", "x", "01"], ["1", "x", "01"], "U"),
        ([" a ", "\u00e4\u4e2d", '"q, r"'], ["a", "\u00e4\u4e2d", "q, r"], "U"),
        (["none", "None", "Na"], ["none", "None", "Na"], "U"),
        (["True", "False", "True"], ["True", "False", "True"], "U"),
    ],
)
def test_labels(read, labels, expected, kind):
    for quick in (True, False):  # by the compiled reader, or cell by cell
        extra = "" if quick else '"0"'
        table = read("".join(f"{i},{extra or 0},{label}\n" for i, label in enumerate(labels)), header=False)
        assert table.y.tolist() == expected and table.y.dtype.kind == kind


def test_white_space_and_empty_lines(read):
    table = read("\n\n a , b , y \n\n 1 ,2, p \n   \n3, 4 ,q\n\n\n")
    assert_array_equal(table.X, [[1, 2], [3, 4]])
    assert table.y.tolist() == ["p", "q"] and table.names == ("a", "b")


def test_a_header_is_what_has_no_number(read):
    assert read("1,2,a\n3,4,b\n").names is None
    assert read("x,y,z\n3,4,b\n").names == ("x", "y")
    assert read(",x,z\n3,4,b\n").names == ("column 1", "x")
    assert read("2019,2020,z\n3,4,b\n", header=True).names == ("2019", "2020")
    assert_array_equal(read("2019,2020,z\n3,4,b\n", header=False).X, [[2019, 2020], [3, 4]])


@pytest.mark.parametrize(
    "content, word",
    [
        ("0,1,2,3,label\n1,2,3,4,a\n", "0, 1, 2, ..., which may be a header or data"),
        (",0,1,2,y\n1,2,3,4,a\n", "may be a header or data"),
        ("1,x2,y\n3,4,a\n", "'x2' in column 2 stands above numbers"),
        ("1,2,y\n3,4,1\n", "'y' in column 3 stands above numbers"),
    ],
)
def test_a_line_that_may_be_either_is_asked_about(read, content, word):
    with pytest.raises(ValueError, match=r"--header yes or --header no") as caught:
        read(content)
    assert word in str(caught.value)
    assert read(content, header=True).names is not None


def test_delimiters_are_found_beside_commas_in_text(read):
    assert_array_equal(read('1;2;"a,b"\n3;4;"c,d"\n').X, [[1, 2], [3, 4]])
    assert_array_equal(read("1\t2\ta;b,c\n3\t4\td\n").X, [[1, 2], [3, 4]])
    assert read('1,2,"a;b"\n3,4,c\n').y.tolist() == ["a;b", "c"]
    assert read("a;b,c;d\n1,2\n3,4\n", delimiter=",").names == ("a;b",)


def test_float32(read):
    table = read("0.1,1e-50,a\n1,2,b\n", dtype=np.float32)
    assert table.X.dtype == np.float32
    assert_array_equal(table.X, np.array([[0.1, 1e-50], [1, 2]]).astype(np.float32))


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_pieces_of_every_size_give_the_same_table(read, monkeypatch, size):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(40, 3))
    rows = [f'{a!r},"{b!r}",{c!r},{"yes" if a > 0 else "no"}' for a, b, c in Z.tolist()]
    for end in ("\n", "\r\n", "\r"):
        monkeypatch.setattr(packed, "BYTES_PER_READ", size)
        table = read(end.join(["a,b,c,y", *rows, ""]))
        assert_array_equal(table.X, Z)
        assert_array_equal(table.y, np.where(Z[:, 0] > 0, "yes", "no"))


def test_svmlight_is_told_by_the_content(read):
    pytest.importorskip("sklearn")
    for name in ("a", "a.txt", "a.dat.gz"):
        assert read("# heart\n1 1:0.5 3:2\n-1 2:1\n", name).X.shape == (2, 3)
        assert read("1 2:0.5 # c\n-1 qid:3 2:1\n", name).X.nnz == 2
    assert read("1,0.5\n2,0.25\n", "a.svm", kind="csv").X.shape == (2, 1)


def test_long_and_wide_rows(read):
    wide = np.random.default_rng(0).normal(size=(3, 30_000))
    table = read("".join(",".join(map(repr, row)) + ",a\n" for row in wide.tolist()))
    assert_array_equal(table.X, wide)


def test_reading_keeps_no_second_copy_of_the_data(tmp_path, monkeypatch):
    monkeypatch.setattr(packed, "BYTES_PER_READ", 1 << 17)
    path = Path(tmp_path, "a.csv")
    path.write_text("1.5,2.5,3.5,4.5,5.5,6.5,7.5,8.5,a\n" * 60_000)
    tracemalloc.start()
    table = read_for_fit(str(path), ReadingOptions())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The data; labels and codes; a piece as lines of text.
    assert peak < 2 * table.X.nbytes + 5e6, (peak, table.X.nbytes)
