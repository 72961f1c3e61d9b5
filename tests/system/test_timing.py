"""Tests do not depend on how busy the machine is, nor on which tests have run before.

No test asserts a wall time below 30 seconds or a ratio of times, and none draws from a generator that others draw from.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from documents import ROOT

WALL = re.compile(r"\b(perf_counter|monotonic)(_ns)?\(|\btime\.time(_ns)?\(|\.elapsed\b")
ANY = re.compile(rf"{WALL.pattern}|\b(process|thread)_time(_ns)?\(")
LEAST = 30.0


class Times:
    """The names of a program that hold times: assigned, appended to, or functions that return them."""

    def __init__(self, tree, clocks):
        self.clocks, self.names = clocks, set()
        before = None
        while before != self.names:
            before = set(self.names)
            for node in ast.walk(tree):
                self.look(node)

    def held(self, node):
        """Whether an expression asks a clock, or uses a name that holds what one said."""
        if self.clocks.search(ast.unparse(node)):
            return True
        return any(isinstance(part, ast.Name) and part.id in self.names for part in ast.walk(node))

    def look(self, node):
        """Add the names that a statement gives a time."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            returned = [part.value for part in ast.walk(node) if isinstance(part, ast.Return) and part.value]
            self.names |= {node.name for value in returned if self.held(value)}
            return
        targets = []
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value and self.held(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            targets = [node.func.value] if self.held(node.args[0]) else []
        self.names |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}


def bounded(comparison):
    """Pairs (what has to be small, how small) of a comparison."""
    sides = [comparison.left, *comparison.comparators]
    for left, operation, right in zip(sides, comparison.ops, sides[1:]):
        if isinstance(operation, (ast.Lt, ast.LtE)):
            yield left, right
        elif isinstance(operation, (ast.Gt, ast.GtE)):
            yield right, left


def faults(text):
    """Lines of the assertions that a busy machine fails, in a program and in the programs that it holds as strings."""
    if not ANY.search(text):
        return []
    tree = ast.parse(text)
    wall, times, found = Times(tree, WALL), Times(tree, ANY), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "assert" in node.value:
            try:
                found += [node.lineno + line - 1 for line in faults(node.value)]
            except SyntaxError:
                continue
        for part in ast.walk(node.test) if isinstance(node, ast.Assert) else ():
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div):
                found += [node.lineno] * (times.held(part.left) and times.held(part.right))
            elif isinstance(part, ast.Compare):
                found += [node.lineno for small, limit in bounded(part) if hopes(small, limit, wall, times)]
    return found


def hopes(small, limit, wall, times):
    """Whether a comparison needs a quick machine: one moment before another is an order, twice as long is a ratio."""
    if times.held(small) and times.held(limit):
        return any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult) for part in ast.walk(limit))
    return wall.held(small) and not (isinstance(limit, ast.Constant) and limit.value >= LEAST)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("start = time.perf_counter()\nassert time.perf_counter() - start < 3", 1),
        ("start = time.time()\nseconds = time.time() - start\nassert 0 <= seconds <= limit * 1.1", 1),
        ("a = monotonic()\nb = monotonic()\nassert b / a < 2", 2),
        ("a = monotonic()\nb = monotonic()\nassert b < 2 * a", 1),
        ("def took():\n    return perf_counter() - START\nassert 5 > took()", 1),
        ("assert model.elapsed < 1.0", 1),
        ("SCRIPT = '''\nt = time.monotonic()\nassert time.monotonic() - t < 1'''", 1),
        ("start = time.perf_counter()\nassert time.perf_counter() - start < 60", 0),
        ("assert time.process_time() - start < 5", 0),
        ("a = monotonic()\nb = monotonic()\nassert a <= b and b - a >= 0.5", 0),
        ("assert clock.now - began < 0.5", 0),
    ],
)
def test_what_counts(program, expected):
    assert len(faults(program)) == expected


def test_no_test_hopes_for_a_quick_machine():
    paths = {*(ROOT / "tests").rglob("*.py"), *(ROOT / "plugins").glob("*/tests/*.py")} - {Path(__file__)}
    assert len(paths) > 200
    wrong = {
        path.relative_to(ROOT).as_posix(): lines
        for path in paths
        if (lines := faults(path.read_text(encoding="utf-8")))
    }
    assert not wrong


# ---------------------------------------------------------------- random numbers


def generators(tree):
    """Names that a module has for generators of random numbers."""
    found = [node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)]
    found = [node for node in found if ast.unparse(node.value.func).endswith("default_rng")]
    return {target.id for node in found for target in node.targets if isinstance(target, ast.Name)}


def draws(tree, others):
    """Lines of functions that draw from a generator of their module, or from that of another one."""
    names = generators(tree)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            names |= {one.asname or one.name for one in node.names if one.name in others.get(node.module, ())}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            used = [part for line in function.body for part in ast.walk(line) if isinstance(part, ast.Name)]
            own = {one.arg for one in function.args.args} | {one.id for one in used if isinstance(one.ctx, ast.Store)}
            yield from sorted({one.lineno for one in used if one.id in names - own})


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("RNG = default_rng(0)\ndef test(): return RNG.random()", 1),
        ("from cases import RNG\ndef test(): return RNG.random()", 1),
        ("RNG = default_rng(0)\nX = RNG.random(3)\n@given(RNG.random())\ndef test(x): return X", 0),
        ("rng = default_rng(0)\ndef test(rng): return rng.random()", 0),
        ("rng = default_rng(0)\ndef test():\n    rng = default_rng(1)\n    return rng.random()", 0),
    ],
)
def test_what_is_drawn_from_others(program, expected):
    assert len(list(draws(ast.parse(program), {"cases": {"RNG"}}))) == expected


@pytest.mark.slow
def test_no_test_draws_from_a_generator_of_others():
    paths = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "plugins").glob("*/tests/*.py")]
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    others = {path.stem: generators(tree) for path, tree in trees.items()}
    wrong = {path.relative_to(ROOT).as_posix(): list(draws(tree, others)) for path, tree in trees.items()}
    assert not {name: lines for name, lines in wrong.items() if lines}
