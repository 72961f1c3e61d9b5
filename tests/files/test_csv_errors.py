"""What is wrong with CSV files, said in one sentence with file, line and column; and files that are none."""

import bz2
import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import command_cases
import numpy as np
import pytest
from command_cases import fails

from mdlearn.files import packed

place, run = command_cases.place, command_cases.run

BAD = {
    "empty": ("", "bad.csv is empty"),
    "blank": ("\n  \n\n", "bad.csv is empty"),
    "bom only": ("\ufeff", "bad.csv is empty"),
    "header only": ("a,b,y\n", "bad.csv has a header, but no rows"),
    "one column": ("1\n2\n", "has one column only"),
    "spaces": ("1 2 3\n4 5 6\n", "told apart by commas, semicolons or tabs (--delimiter)"),
    "missing": ("a,b,y\n1,2,p\n1,,q\n", "bad.csv, line 3, column 2 (b) has a missing value ('')"),
    "NA": ("a,b,y\n1,2,p\n\n1,NA,q\n", "bad.csv, line 4, column 2 (b) has a missing value ('NA')"),
    "nan": ("1,2,p\nnan,3,q\n", "bad.csv, line 2, column 1 has a missing value ('nan')"),
    "no label": ("1,2,p\n3,4,\n", "bad.csv, line 2, column 3 has no label"),
    "short row": ("1,2,p\n3,q\n", "bad.csv, line 2 has 2 cells, but the lines before have 3"),
    "long row": ("a,b,y\n1,2,p,\n", "bad.csv, line 2 has 4 cells, but the lines before have 3"),
    "text": ("a,b,y\n1,2,p\n3,4x,q\n", "bad.csv, line 3, column 2 (b) holds '4x', which is no finite number"),
    "underscore": ("1,2,p\n1_0,2,q\n", "line 2, column 1 holds '1_0'"),
    "hexadecimal": ("1,2,p\n0x10,2,q\n", "line 2, column 1 holds '0x10'"),
    "other digits": ("1,2,p\n\uff11,2,q\n", "line 2, column 1 holds '\uff11'"),
    "infinity": ("1,2,p\n-inf,2,q\n", "line 2, column 1 holds '-inf', which is no finite number"),
    "overflow": ("1,2,p\n1,2e999,q\n", "line 2, column 2 holds '2e999', which is too large"),
    "decimal comma": (
        "1,5;2,5;p\n3,5;4,5;q\n",
        "line 1, column 1 holds '1,5': numbers are written with a decimal point",
    ),
    "open quote": ('1,2,p\n3,"4,q\n5,6,p\n', "line 2 has a quote that is not closed on this line"),
    "quoted break": ('"a\nb",c,y\n1,2,p\n', "begins with a line in which a quote is not closed"),
    "same names": ("a,a,y\n1,2,p\n3,4,q\n", "has two columns named 'a'"),
    "long label": ("1,2,p\n3,4," + "q" * 201 + "\n", "line 2, column 3 holds a label of 201 characters"),
    "long cell": ("1,2,p\n" + "3" * 200_000 + ",4,q\n", "cannot be split into cells: field larger than"),
    "long text": ("1,2,p\n" + "x" * 200_000 + ",4,q\n", "cannot be split into cells: field larger than"),
    "latin 1": ("1,2,p\n3,4,\u00e9\n".encode("latin-1"), "bad.csv, line 2 is no UTF-8 text"),
    "utf 16": ("1,2,p\n3,4,q\n".encode("utf-16"), "bad.csv is UTF-16 text; save it as UTF-8"),
    "binary": (bytes(range(256)) * 10, "NUL bytes"),
    "zip": (b"PK\x03\x04" + b"\0" * 50, "bad.csv is a zip archive"),
    "xz": (b"\xfd7zXZ\x00" + b"\0" * 50, "packed by xz; unpack it first"),
    "one class": ("1,2,p\n3,4,p\n", "at least two classes"),
    "pieces": ("1,2,p\n" * 400_000 + "1,,q\n", "bad.csv, line 400001, column 2 has a missing value"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_csv_files(kind, place, run):
    content, words = BAD[kind]
    Path("bad.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run("fit", "bad.csv", "-o", "m.npz")
    fails(result, words)
    assert len(result[2]) < 400 and not Path("m.npz").exists()


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--target", "c"), "t.csv has no column 'c'; its header has 'a', 'b', 'y'"),
        (("--target", "Y"), "t.csv has no column 'Y'; its header has 'a', 'b', 'y'; did you mean 'y'?"),
        (("--target", "4"), "t.csv has 3 columns, none with the number 4"),
        (("--target", "0"), "none with the number 0 (they count from 1)"),
        (("--header", "no"), "t.csv, line 1, column 1 holds 'a'"),
        (("--header", "no", "--target", "y"), "it has no header"),
        (("--delimiter", "semicolon"), "has one column only"),
        (("--features", "3"), "--features is for svmlight files, and t.csv is read as csv"),
        (("--data-format", "svmlight", "--target", "y"), "--target is for CSV files"),
        (("--data-format", "svmlight"), "t.csv, line 1 begins with 'a,b,y'; a row is a label"),
        (("--float32",), "line 3, column 2 (b) holds '1e39', which is too large"),
    ],
)
def test_options_that_do_not_fit_the_file(arguments, words, place, run):
    Path("t.csv").write_text("a,b,y\n1,2,p\n3,1e39,q\n")
    fails(run("fit", "t.csv", "-o", "m.npz", *arguments), words)


@pytest.mark.parametrize(
    "arguments", [("--header", "maybe"), ("--delimiter", "|"), ("--data-format", "xls"), ("--target",), ("--cv", "x")]
)
def test_wrong_usage(arguments, place, run):
    code, out, err = run("fit", "a.csv", "-o", "m.npz", *arguments)
    assert (code, out) == (2, "") and "usage:" in err


def test_files_that_cannot_be_opened(place, run):
    fails(run("fit", "none.csv", "-o", "m.npz"), "none.csv", "No such file")
    Path("folder.csv").mkdir()
    fails(run("fit", "folder.csv", "-o", "m.npz"), "folder.csv", "directory")
    Path("locked.csv").write_text("1,2\n")
    Path("locked.csv").chmod(0)
    if not os.access("locked.csv", os.R_OK):
        fails(run("fit", "locked.csv", "-o", "m.npz"), "locked.csv", "Permission denied")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_damaged_packed_files(pack, place, run):
    content = pack(b"".join(b"%d,%d,%d\n" % (i, i * i % 7, i % 2) for i in range(3000)))
    for name in ("b.csv", "b.csv.gz", "b"):
        for damaged in (content[:-9], content[: len(content) // 2], content[:60] + b"\1" * 9 + content[69:]):
            Path(name).write_bytes(damaged)
            fails(run("fit", name, "-o", "m.npz"), f"{name} is packed, but damaged or cut short")


def test_a_line_without_end_is_refused_before_it_fills_the_memory(place, run, monkeypatch):
    monkeypatch.setattr(packed, "LINE_BYTES", 1 << 20)
    monkeypatch.setattr(packed, "BYTES_PER_READ", 1 << 16)
    for name, piece in (("a.csv", b"1,"), ("a.svm", b"1 1:1"), ("a", b"x")):
        Path(name).write_bytes(gzip.compress(b"1,2\n" * (name == "a.csv") + piece * (2 << 20)))
        fails(run("fit", name, "-o", "m.npz"), f"{name}, line {1 + (name == 'a.csv')} is longer than 1 MB")


@pytest.mark.parametrize("name, line", [("a.csv.gz", b"1,2,0\n"), ("a.svm.gz", b"1 1:1 2:3\n")])
def test_a_packed_file_beyond_the_memory_is_refused(name, line, place, run, monkeypatch):
    from mdlearn.numerics import memory

    Path(name).write_bytes(gzip.compress(line * 500_000))
    monkeypatch.setattr(memory, "available_bytes", lambda: 2e6)
    fails(run("fit", name, "-o", "m.npz"), f"reading {name} (as far as line 1) needs", "give a part of the file")


SVMLIGHT = {
    "x 1:1": "begins with 'x'; a row is a label",
    "\x1c": "begins with '\\x1c'; a row is a label",
    "1 1:1\u00a02:1": "holds '1:1\\xa02:1', which is no column:value pair",
    "1e 1:1": "begins with '1e'; a row is a label",
    "1 1:1 2": "holds '2', which is no column:value pair",
    "1 1:1_0": "holds '1:1_0', which is no column:value pair",
    "1 1:nan": "holds '1:nan', which is no column:value pair",
    "1 qidx:3 1:1": "holds 'qidx:3', which is no column:value pair",
    "1 2:1 2:1": "holds column 2 after column 2; columns need to ascend",
    "1 99999999999:1": "holds the column 99999999999; the last one possible is 2147483647",
    "1 1:1e999": "holds a number too large for float64",
    "1e999 1:1": "has a label too large for float64",
}


@pytest.mark.parametrize("line", SVMLIGHT)
def test_svmlight_errors_name_the_line(line, place, run):
    Path("b.svm").write_text(f"1 1:1\n\n# note\n{line}\n-1 1:2\n")
    result = run("fit", "b.svm", "-o", "m.npz")
    fails(result, SVMLIGHT[line])
    assert "b.svm, line 4 " in result[2] or "b.svm, row 2 " in result[2]


@pytest.mark.parametrize("options", [(), ("--features", "2147483647")])
def test_a_column_beyond_the_memory_is_refused_before_the_fit(options, place, run, monkeypatch):
    from mdlearn.numerics import memory

    Path("b.svm").write_text("1 1:1 2147483647:1\n-1 2:1\n" if not options else "1 1:1\n-1 2:1\n")
    monkeypatch.setattr(memory, "available_bytes", lambda: 100e9)
    fails(run("fit", "b.svm", "-o", "m.npz", *options), "a model of the 2147483647 columns of b.svm needs 68.7 GB")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("line", [b"1,2,3,a\n", b'1,"2",3,a\n', b"\n"])
def test_ctrl_c_ends_the_reading_of_a_file(line, place):
    os.mkfifo("endless.csv")
    with subprocess.Popen(
        [sys.executable, "-m", "mdlearn", "fit", "endless.csv", "-o", "m.npz"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        with open("endless.csv", "wb", buffering=0) as pipe:
            pipe.write(line * 20_000)
            process.send_signal(signal.SIGINT)
            with pytest.raises(BrokenPipeError):
                for _ in range(2000):
                    pipe.write(line * 5000)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")


def test_random_bytes_are_one_sentence(place, run):
    rng = np.random.default_rng(0)
    for i in range(20):
        Path("r.csv").write_bytes(rng.bytes(200) if i % 2 else bytes(rng.integers(32, 127, 200, dtype=np.uint8)))
        fails(run("fit", "r.csv", "-o", "m.npz"), "r.csv")
