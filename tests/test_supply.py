"""What Spinodal is built on: every installed package that it needs, directly or not, has an open licence."""

import re
from email.message import Message
from importlib.metadata import PackageNotFoundError, distribution

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

OPEN = re.compile(
    r"0BSD|Apache|BSD|BSL-1\.0|CC0|CMU|ISC|LGPL|LLVM-exception|MIT|MPL|Mozilla|PSF|Python Software Foundation|Zlib"
    r"|Redistribution and use in source and binary forms"
)


def needed(name, extras):
    """The metadata of packages by name, from ``name`` on."""
    waiting, seen, found = [(name, extras)], set(), {}
    while waiting:
        if (key := waiting.pop()) in seen:
            continue
        seen.add(key)
        name, extras = key
        try:
            package = distribution(name)
        except PackageNotFoundError:  # for another system, or another Python
            continue
        found[name] = package.metadata
        for need in map(Requirement, package.requires or ()):
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                waiting.append((canonicalize_name(need.name), frozenset(need.extras)))
    return found


def is_open(about):
    """All parts of the expression, if there is one; else one of the classifiers, since they are alternatives; else the text."""
    if expression := about.get("License-Expression"):
        return all(map(OPEN.search, re.findall(r"\b(?!(?:AND|OR|WITH)\b)[\w.-]+", expression)))
    stated = [line for line in about.get_all("Classifier") or () if line.startswith("License ::")]
    return any(map(OPEN.search, stated or [about.get("License", "")]))


def test_no_dependency_has_a_closed_licence():
    found = needed("spinodal", frozenset({"dev"}))
    assert {"sympy", "torch", "distributed", "toolz", "pluggy"} <= found.keys()
    assert [name for name, about in found.items() if not is_open(about)] == []


@pytest.mark.parametrize(
    "fields, accepted",
    [
        ({"License-Expression": "MIT AND (BSD-3-Clause OR Apache-2.0 WITH LLVM-exception)"}, True),
        ({"License-Expression": "MIT AND LicenseRef-Proprietary"}, False),
        ({"License-Expression": "AGPL-3.0-only"}, False),
        ({"Classifier": "License :: OSI Approved :: BSD License"}, True),
        ({"Classifier": "License :: Other/Proprietary License", "License": "MIT"}, False),
        ({"License": "All rights reserved."}, False),
        ({}, False),
    ],
)
def test_what_is_an_open_licence(fields, accepted):
    about = Message()
    for name, text in fields.items():
        about[name] = text
    assert is_open(about) == accepted
