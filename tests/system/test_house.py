"""The rules of the layout: small folders, one meaning per class name, engines that do not know each other."""

import ast
import re
from collections import defaultdict

from documents import PACKAGE, syntax_trees

FILES = 14
"""In a folder at most; the compiled kernels, one file per .pyx with its annotations, are not counted."""
ENGINES = (
    "coordinate_descent",
    "decomposition",
    "fixed_point",
    "hybrid",
    "interior_point",
    "linear_program",
    "newton",
    "newton_cg",
    "proximal_gradient",
    "quadratic",
    "stochastic",
)


def sources():
    found = syntax_trees()
    assert len(found) > 200
    return found


def test_folders_are_small():
    count = defaultdict(int)
    for path in sources():
        count[path.parent.relative_to(PACKAGE).as_posix()] += 1
    large = {folder: files for folder, files in count.items() if files > FILES}
    assert not large


def test_folders_say_what_lives_in_them():
    for path, tree in ((path, tree) for path, tree in sources().items() if path.name == "__init__.py"):
        text = ast.get_docstring(tree)
        assert text and text.split("\n")[0].endswith("."), path


def test_a_class_name_has_one_meaning():
    places = defaultdict(list)
    for path, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path.relative_to(PACKAGE).as_posix())
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert not twice


def test_engines_do_not_import_each_other():
    """One that goes on where another ends is the driver's choice (`mdlearn.solvers.auto`)."""
    asked = set()
    for path in (PACKAGE / "solvers").rglob("*.py"):
        own = path.relative_to(PACKAGE / "solvers").parts[0].removesuffix(".py")
        names = re.findall(r"^\s*from mdlearn\.solvers\.(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        if own not in ("__init__", "auto"):
            asked |= {(own, name) for name in names if name in ENGINES and name != own}
    assert not asked


SHARED_NAMES = 120
"""Module constants that share their name with another module's: falls only."""


def test_a_constant_says_of_what():
    """The names that a search found fourteen times say what they count now."""
    places = defaultdict(list)
    for path, tree in sources().items():
        for node in tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            for name in (name for target in targets for name in getattr(target, "elts", [target])):
                if isinstance(name, ast.Name) and name.id.isupper():
                    places[name.id].append(path.relative_to(PACKAGE).as_posix())
    assert not {"PIECE", "PATIENCE", "FEW", "MOST", "STIFF", "ROUNDS", "LONGEST"} & set(places)
    shared = {name: where for name, where in places.items() if len(where) > 1}
    assert sum(map(len, shared.values())) <= SHARED_NAMES, shared


EMPTY_WORDS = {"told", "held", "known", "walk", "begun", "look", "looks", "eased", "loose", "recalled"}


def test_names_and_docstrings_say_what_is_returned():
    """A docstring begins with a verb or a noun; these words name nothing."""
    for path, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                assert not EMPTY_WORDS & set(node.name.strip("_").split("_")), (path, node.name)
                text = ast.get_docstring(node) or ""
                assert text.split(" ")[0].rstrip(",;:") not in ("What", "Some", "How"), (path, node.name)
                assert not text.startswith("The same"), (path, node.name)
