"""Attacks on model files: another header or other arrays, with a digest that fits."""

import contextlib
import copy
import json
import warnings

import numpy as np
from model_damage import packed
from persistence_cases import opened


def attacked(rng, content, others, canary):
    """Return a file with another header or other arrays, whose digest fits, and the name of the mutation."""
    header, arrays = opened(content)
    if rng.random() < 0.1:
        header["arrays"] = {name: [a.dtype.str, list(a.shape)] for name, a in arrays.items()}
        return _raw_text(rng, header, arrays), "text of the header"
    how, more = (list(ATTACKS)[i] for i in rng.integers(len(ATTACKS), size=2))
    ATTACKS[how](rng, header, arrays, others, canary)
    if rng.integers(3) == 0:
        with contextlib.suppress(Exception):  # the first one may have taken away what this one changes
            ATTACKS[more](rng, header, arrays, others, canary)
    return packed(header, arrays), how


VALUES = [
    *(None, True, False, 0, 1, -1, 2, 3, 2**31, 2**63, -(2**63), 10**30, 10**400, 0.0, -0.0, 0.5, 1e-320, 1e308),
    *(float("inf"), float("nan"), {"number": "nan"}, {"number": "inf"}, {"number": "1"}, {"array": "coef"}, {}, []),
    *(
        "",
        "rbf",
        "linear",
        "poly",
        "precomputed",
        "callable",
        "ovr",
        "ovo",
        "none",
        "joint",
        "fuzzy-avg",
        "l3svm",
        "uldm",
        "nystroem",
        "landmarks",
    ),
    *("mlr", "csr", "dense", "free", "\u00fc\u202e\x00", "x" * 100_000, [0] * 50, [[[[]]]], {"a": {"a": {}}}),
    *("os.system", "__import__('os')", ["coef"], {"__class__": "x"}, {"array": "nowhere"}, 1.0, 7, 60, 4),
]
NUMBERS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 0.0, -0.0, -1.0, 1e30, 2.0]
WHOLES = [-1, 0, 1, 3, 2**31 - 1, -(2**31), 2**31, 2**62, -(2**63), 59, 60]
DTYPES = ["f8", "f4", ">f8", "f2", "i8", "i4", "u8", "i1", "?", "c16", "U3", "S5", "M8[s]", "f16", "O", "V8"]


def _paths(value, at=()):
    """Places of the values of a header."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*at, key)
        yield from _paths(item, (*at, key))


def _holder(header, path):
    for key in path[:-1]:
        header = header[key]
    return header


def _a_path(rng, header):
    paths = [p for p in _paths(header) if p[0] not in ("arrays", "history") or rng.random() < 0.05]
    return paths[rng.integers(len(paths))]


def _set_value(rng, header, arrays, others, canary):
    path = _a_path(rng, header)
    _holder(header, path)[path[-1]] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])


def _drop_value(rng, header, arrays, others, canary):
    path = _a_path(rng, header)
    del _holder(header, path)[path[-1]]


def _move_value(rng, header, arrays, others, canary):
    one, two = _a_path(rng, header), _a_path(rng, header)
    _holder(header, one)[one[-1]] = copy.deepcopy(_holder(header, two)[two[-1]])


def _other_header(rng, header, arrays, others, canary):
    """Values, or all, of the header of another model."""
    found, _ = opened(others[rng.integers(len(others))])
    names = list(found) if rng.random() < 0.3 else [list(found)[rng.integers(len(found))]]
    header.update({name: found[name] for name in names})


def _other_array(rng, header, arrays, others, canary):
    """An array of another model, or another one of this."""
    _, found = opened(others[rng.integers(len(others))])
    source = found if rng.random() < 0.5 else arrays
    arrays[_name(rng, arrays)] = source[list(source)[rng.integers(len(source))]]


def _name(rng, arrays):
    return list(arrays)[rng.integers(len(arrays))]


def _numbers(rng, header, arrays, others, canary):
    """Single numbers: not finite, huge, or indices out of range."""
    name = _name(rng, arrays)
    array = arrays[name] = np.array(arrays[name])
    if array.size == 0 or array.dtype.kind not in "iuf":
        return
    choice = NUMBERS if array.dtype.kind == "f" else WHOLES
    with np.errstate(all="ignore"):
        values = np.array(choice).astype(array.dtype)
    for _ in range(int(rng.choice([1, 1, 3, array.size]))):
        array[np.unravel_index(int(rng.integers(array.size)), array.shape)] = values[rng.integers(len(values))]


def _shape(rng, header, arrays, others, canary):
    name = _name(rng, arrays)
    a = arrays[name]
    ways = [a[:0], a[:1], a[..., :1], a[..., :0], a.T, a.ravel(), a[None], a[1:], np.repeat(a, 2, axis=-1)]
    ways += [
        a[::-1],
        np.asfortranarray(a),
        np.zeros((0, *a.shape)),
        np.zeros((10**6, 0)),
        np.array(1.0),
        a.reshape(-1, 1),
    ]
    arrays[name] = ways[rng.integers(len(ways))]
    if rng.random() < 0.7:
        arrays[name] = np.ascontiguousarray(arrays[name])


def _dtype(rng, header, arrays, others, canary):
    name, dtype = _name(rng, arrays), DTYPES[rng.integers(len(DTYPES))]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            arrays[name] = arrays[name].astype(dtype)
        except (TypeError, ValueError):
            arrays[name] = np.zeros(arrays[name].shape, dtype)


def _resized(rng, header, arrays, others, canary):
    """Several arrays at once, so that they fit each other again."""
    n = int(rng.choice([0, 1, 2, 5, 1000]))
    kind = rng.integers(3)
    if kind == 0:
        header["n_features_in"] = n
        for name in ("coef", "rows", "centre", "map_centers", "map_landmarks"):
            if name in arrays:
                arrays[name] = np.ones((*arrays[name].shape[:-1], n))
    elif kind == 1:
        for name in ("duals", "dual_coef"):
            if name in arrays:
                arrays[name] = np.ones((*arrays[name].shape[:-1], n))
        arrays["support"] = np.arange(n)
        arrays["n_support"] = np.r_[n, np.zeros(arrays["n_support"].shape[0] - 1, int)]
    else:
        arrays["classes"] = np.arange(n)
        arrays["n_support"] = np.r_[arrays["support"].shape[0], np.zeros(max(n, 1) - 1, int)]
        for name in ("intercept", "norms", "duals", "dual_coef", "coef"):
            if name in arrays:
                arrays[name] = np.ones((n, *arrays[name].shape[1:]))


def _extra(rng, header, arrays, others, canary):
    """Attributes with names that mean something to Python."""
    names = ["__deepcopy__", "__array__", "predict", "coef_", "_rows", "x y", "", "x", "__getstate__", "f\u00fc_"]
    name = names[rng.integers(len(names))]
    header["extras"][name] = [None, 1, 3, -1, 10**9][rng.integers(5)]
    arrays[f"extra_{name}_0"] = np.ones(2)


def _object(rng, header, arrays, others, canary):
    arrays[_name(rng, arrays)] = np.array([canary, canary], dtype=object)


ATTACKS = {
    "set a value": _set_value,
    "set another value": _set_value,
    "drop a value": _drop_value,
    "move a value": _move_value,
    "header of another model": _other_header,
    "array of another model": _other_array,
    "numbers": _numbers,
    "more numbers": _numbers,
    "shapes": _shape,
    "dtypes": _dtype,
    "sizes that fit": _resized,
    "attributes": _extra,
    "objects": _object,
}


def _raw_text(rng, header, arrays):
    """Headers that `json.dumps` does not write: deep nesting, names twice, numbers that are none, other encodings."""
    text = json.dumps(header)
    deep = int(rng.choice([100, 5000, 200_000]))
    ways = [
        text.replace('"notes": {}', f'"notes": {"[" * deep}{"]" * deep}'),
        text.replace('"notes": {}', f'"notes": {"{" + chr(34) + "a" + chr(34) + ":"}' * 1 + "[" * deep),
        text.replace('"bias":', '"bias": "none", "bias":'),
        text.replace('"notes": {}', '"notes": {"a": NaN, "b": -Infinity}'),
        text.replace('"notes": {}', '"notes": {"a": ' + "9" * deep + "}"),
        text.replace('"notes": {}', '"notes": {"a": 1e99999}'),
        text.replace('"notes": {}', '"notes": {"\\ud800": "\\u0000"}'),
        text + " x",
        text[:-1],
        "\ufeff" + text,
        text.replace('"version": 5', f'"version": {int(rng.integers(0, 7))}'),
    ]
    made = ways[rng.integers(len(ways))]
    coded = made.encode(["utf-8", "utf-8", "utf-8", "utf-16", "latin-1"][rng.integers(5)], "replace")
    return packed(header, arrays, coded)
