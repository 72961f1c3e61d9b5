"""Damaged data files: every one is refused by one sentence, or loaded as plain Python reads it.

``python tests/support/fuzz_data.py --count 10000`` runs seeded mutations of CSV and svmlight files (plain, gzip, bzip2)
through the command line's readers, in batches with a bound on memory and time, each batch in a process of its own.
"""

from __future__ import annotations

import argparse
import bz2
import collections
import contextlib
import csv
import gzip
import io
import json
import re
import signal
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np

MEMORY = 3 << 30
"""Address space of a batch, in bytes."""
SECONDS = 20
"""For one file."""
BATCH = 250
NAMES = ("a.csv", "a.tsv", "a.svm", "a.libsvm", "a", "a.txt", "a.csv.gz", "a.svm.bz2", "a.gz")
TOKENS = (
    *(b"99999999999:1", b"2147483647:1", b"2147483648:1", b"0:0", b"-1:1", b"1:", b":1", b"::", b"1:1:1", b"qid:3"),
    *(b"qidx", b"nan", b"inf", b"-inf", b"1e999", b"1e-999", b"9" * 400, b"1_000", b"0x10", b"1e5", b"+5", b"--5"),
    *(b"1,5", b"NA", b"?", b"null", b"True", b'"', b'""', b'"a', b"'", b",", b";", b"\t", b" ", b"#", b"\n", b"\r"),
    *(b"\r\n", b"\n\n\n", b"\0", b"\x0b", b"\x0c", b"\x1a", b"\x1c", b"\xff\xfe", b"\xef\xbb\xbf", b"\xe9"),
    *("\u0661\u0662".encode(), "\u2028".encode(), "\u00a0".encode(), "\uff11".encode(), b"a" * 5000, b"1," * 3000),
    *(b"\x1f\x8b", b"BZh9", b"PK\x03\x04", b"1 " * 2000),
)


def svmlight(rng, zero_based=False):
    lines = []
    for _ in range(rng.integers(1, 30)):
        columns = np.flatnonzero(rng.random(4) < 0.7) + (0 if zero_based else 1)
        pairs = [f"{j}:{rng.normal():.{rng.integers(0, 17)}g}" for j in columns]
        lines.append(" ".join([str(rng.choice([-1, 1])), *pairs]) + (" # note" if rng.random() < 0.1 else ""))
    return "\n".join(lines) + "\n"


def table(rng, delimiter):
    quote = '"' if rng.random() < 0.3 else ""
    labels = [["-1", "1"], ["yes", "no", "may be"], ["0.5", "2.5"]][rng.integers(3)]
    lines = [delimiter.join(f"{quote}x{j}{quote}" for j in [*range(4), "label"])] if rng.random() < 0.5 else []
    for _ in range(rng.integers(1, 30)):
        cells = [f"{rng.normal():.{rng.integers(1, 17)}g}" for _ in range(4)]
        lines.append(delimiter.join([*cells, quote + labels[rng.integers(len(labels))] + quote]))
    return ["\n", "\r\n", "\r"][rng.choice(3, p=[0.7, 0.2, 0.1])].join([*lines, ""])


def damaged(content, rng):
    """One mutation, two or four."""
    content = bytearray(content)
    for _ in range(rng.choice([1, 2, 4], p=[0.6, 0.3, 0.1])):
        at = int(rng.integers(0, len(content) + 1))
        to = min(len(content), at + int(rng.choice([3, 20, 1000])))
        kind = rng.integers(7)
        if kind == 0 and at < len(content):
            content[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del content[at:]
        elif kind == 2:
            del content[at:to]
        elif kind == 3:
            content[at:at] = content[at:to] * int(rng.integers(1, 4))
        elif kind == 4:
            content[at:to] = rng.bytes(min(to - at, 40))
        else:
            content[at:at] = TOKENS[rng.integers(len(TOKENS))]
    return bytes(content)


def case(seed, index):
    """Name and content of one file."""
    rng = np.random.default_rng([seed, index])
    make = rng.integers(5)
    text = svmlight(rng, make == 0) if make < 2 else table(rng, ",;\t"[make - 2])
    encoding = rng.choice(["utf-8", "utf-16", "utf-8-sig"], p=[0.92, 0.04, 0.04])
    content = text.encode(str(encoding))
    if rng.random() < 0.9:
        content = damaged(content, rng)
    pack = rng.integers(4)
    if pack > 1:
        content = gzip.compress(content, mtime=0) if pack == 2 else bz2.compress(content)
        if rng.random() < 0.3:
            content = damaged(content, rng)
    name = (("a.svm", "a") if make < 2 else ("a.csv", "a"))[rng.integers(2)]
    return NAMES[rng.integers(len(NAMES))] if rng.random() < 0.2 else name, content


# What plain Python makes of such a file


def unpacked(content):
    if content[:2] == b"\x1f\x8b":
        return gzip.decompress(content)
    return bz2.decompress(content) if content[:3] == b"BZh" else content


def plain_lines(content):
    # Comments of svmlight files may be in any encoding.
    text = unpacked(content).decode("utf-8-sig", "replace")
    return [line for line in re.split("\r\n|\n|\r", text) if line.strip(" ")]


def plain_svmlight(lines):
    """Labels and dictionaries column -> value, columns as in the file."""
    y, rows = [], []
    for line in lines:
        parts = line.split("#")[0].split()
        if not parts:
            continue
        if len(parts) > 1 and re.fullmatch("qid:[0-9]+", parts[1]):
            del parts[1]
        pairs = [re.fullmatch(r"\+?([0-9]+):([-+0-9.eE]+)", part).groups() for part in parts[1:]]
        columns = [int(column) for column, _ in pairs]
        assert columns == sorted(set(columns))
        y.append(float(parts[0]))
        rows.append(dict(zip(columns, (float(value) for _, value in pairs))))
    return y, rows


def agrees_svmlight(found, lines):
    y, rows = plain_svmlight(lines)
    shift = 0 if found.notes["zero_based"] else 1
    assert found.y.tolist() == y and found.X.shape[0] == len(rows)
    for i, row in enumerate(rows):
        a, b = found.X.indptr[i : i + 2]
        assert dict(zip((found.X.indices[a:b] + shift).tolist(), found.X.data[a:b].tolist())) == row


def agrees_csv(found, lines):
    """The table is what the csv module and float() make of the lines, with some delimiter, header or not."""
    skipped = 0 if found.names is None else 1
    for delimiter in ",;\t":
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines[skipped:], delimiter=delimiter)]
        with contextlib.suppress(ValueError):
            X = np.array([[float(cell) for cell in row[:-1]] for row in rows])
            if X.shape == found.X.shape and (X == found.X).all():
                break
    else:
        raise AssertionError("values differ from those of the csv module")
    assert all(re.fullmatch(r"[-+0-9.eE]+", cell) for row in rows for cell in row[:-1])
    labels = [row[-1] for row in rows]
    assert found.y.tolist() in (labels, [float(label) for label in labels] if found.y.dtype.kind != "U" else None)


# One file, one batch, all


class Hang(Exception):
    pass


def run(main, *arguments):
    """Exit code of a command, after a look at what it says."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    told = err.getvalue()
    assert code in (0, 1) and "Traceback" not in told
    assert code == 0 or (told.startswith("error: ") and told.count("\n") == 1 and len(told) < 700), told[:900]
    return code, told


def judge(path, content, model, fitted):
    """Outcome of one file; AssertionError where it is neither refused by a sentence nor read correctly."""
    from mdlearn.cli import main
    from mdlearn.files.reading import ReadingOptions, read_for_fit

    try:
        found = read_for_fit(str(path), ReadingOptions())
    except (ValueError, OSError, MemoryError) as error:
        text = str(error)
        assert path.name in text and len(text) < 700 and not isinstance(error, (UnicodeError, zlib.error)), text[:900]
        outcome = "refused"
    else:
        outcome = "loaded as svmlight" if hasattr(found.X, "nnz") else "loaded as CSV"
        agrees = agrees_svmlight if hasattr(found.X, "nnz") else agrees_csv
        agrees(found, plain_lines(content))
    if fitted:
        code, told = run(main, "fit", path, "-o", path.parent / "new.npz", "--max-iter", 3, "--time-limit", 2)
        assert code == 1 or outcome != "refused", told
    code, told = run(main, "predict", model, path, "-o", path.parent / "out", "--force")
    return f"{outcome}, predicted" if code == 0 else outcome


def batch(seed, start, count):
    """Judge files one by one; a line before each says which, so that a crash can be told."""
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    def stop(*_):
        raise Hang

    signal.signal(signal.SIGALRM, stop)
    import mdlearn

    outcomes, faults = collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "m.npz")
        rng = np.random.default_rng(0)
        X = rng.normal(size=(30, 4))
        mdlearn.fit("ldm", X, np.where(X[:, 0] > 0, 1, -1)).save(model)
        for index in range(start, start + count):
            print(index, file=sys.stderr, flush=True)
            name, content = case(seed, index)
            path = Path(folder, name)
            path.write_bytes(content)
            signal.alarm(SECONDS)
            try:
                outcome = judge(path, content, model, index % 5 == 0)
            except BaseException as error:
                outcome = "FAULT"
                faults.append([index, f"{type(error).__name__}: {error}"[:900]])
            signal.alarm(0)
            outcomes[outcome] += 1
            path.unlink()
    print(json.dumps({"outcomes": outcomes, "faults": faults}))


def fuzz(seed, count, size=BATCH):
    """Outcomes of `count` files, and what is wrong with which."""
    outcomes, faults = collections.Counter(), []
    for start in range(0, count, size):
        some = min(size, count - start)
        command = [sys.executable, __file__, "--batch", str(start), "--count", str(some), "--seed", str(seed)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120 + 2 * some)
            fault = f"exit code {done.returncode}: {done.stderr[-600:]}" if done.returncode else ""
            told = done.stderr
        except subprocess.TimeoutExpired as error:
            fault, told = "does not come back", (error.stderr or b"").decode()
        if fault:
            files = re.findall("^[0-9]+$", told, re.MULTILINE)
            faults.append([int(files[-1]) if files else start, fault])
            outcomes["FAULT"] += 1
            continue
        found = json.loads(done.stdout)
        outcomes.update(found["outcomes"])
        faults += found["faults"]
    return outcomes, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, help="run files from this one on in this process")
    given = parser.parse_args()
    if given.batch is not None:
        return batch(given.seed, given.batch, given.count)
    outcomes, faults = fuzz(given.seed, given.count)
    for outcome, number in sorted(outcomes.items()):
        print(f"{number:7d}  {outcome}")
    for index, what in faults[:50]:
        print(f"file {index} of seed {given.seed}: {what}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
