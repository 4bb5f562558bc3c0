"""Declared limits: what a file holds of them, or one message that names the key; and those of the classical models."""

from __future__ import annotations

from pathlib import Path

import pytest

from derive.action import SetupError
from derive.catalogue import classical, find
from derive.files.theory import parsed, starter

MAGNET = (find("classical/curie-weiss-in-field").module, "\n[[limits]]\n")
GLASS = find("classical/sherrington-kirkpatrick").module
GOOD = {"parameter": '"T"', "to": '"1-"', "quantity": '"spinodal"', "meaning": '"the end of the loop"'}


def declared(**keys: str) -> str:
    """The magnet in a field, with one more limit; a key without a value is left out."""
    path, head = MAGNET
    table = "\n".join(f"{key} = {value}" for key, value in {**GOOD, **keys}.items() if value)
    return Path(path).read_text() + head + table


def test_what_is_declared() -> None:
    before = len(find("classical/curie-weiss-in-field").limits)
    *others, last = parsed(declared(order="5"), "mine").limits
    assert len(others) == before
    assert (last.name, last.meaning, last.order, last.phase, last.values) == (
        "spinodal",
        "the end of the loop",
        5,
        None,
        {},
    )
    assert str(last.limit) == "T = 1-"
    minimum = parsed(declared(to="0", quantity='"m"', phase='"up"', setup="{ h = 0 }"), "mine").limits[-1]
    assert (minimum.name, minimum.phase, minimum.values) == ("m", "up", {"h": "0"})


BAD = {
    "an unknown key": ({"paramter": '"T"'}, r"limits, number 3 has no key 'paramter'; did you mean parameter"),
    "no parameter": ({"parameter": ""}, "limits, number 3 needs the key parameter"),
    "no direction": ({"to": ""}, "needs the key to"),
    "no quantity": ({"quantity": ""}, "needs the key quantity"),
    "no words": ({"meaning": ""}, "needs the key meaning"),
    "an undeclared parameter": ({"parameter": '"Q"'}, r"limits, number 3\.parameter: 'Q' is none of T, h"),
    "an order parameter": ({"parameter": '"m"'}, r"limits, number 3\.parameter: 'm' is none of"),
    "a number for a name": ({"parameter": "1"}, r"limits, number 3\.parameter: this has to be text"),
    "a list for a limit": ({"to": "[0]"}, r"limits, number 3\.to: this has to be a formula"),
    "no side": ({"to": "1"}, "limits, number 3: say from which side T goes to 1"),
    "out of range": ({"to": '"0-"'}, "limits, number 3: T=0- is out of range"),
    "no number": ({"to": '"far"'}, "limits, number 3: the limit of T: "),
    "no such quantity": ({"quantity": '"magnet"'}, "limits, number 3: 'magnet' is no quantity"),
    "text for an order": ({"order": '"3"'}, r"limits, number 3\.order: this has to be a whole number"),
    "too many terms": ({"order": "13"}, "limits, number 3.order: this has to be a whole number from 1 to 12"),
    "no such phase": ({"phase": '"left"'}, "limits, number 3: 'left' is none of the phases down, up"),
    "an undeclared setup": ({"setup": "{ J = 1 }"}, r"limits, number 3\.setup: 'J' is none of"),
    "a setup out of range": ({"quantity": '"m"', "setup": "{ h = 11 }"}, "limits, number 3: h = 11 is out of range"),
    "a setup of the limit": ({"setup": "{ T = 1 }"}, "limits, number 3: T goes to 1 in this limit"),
    "a setup of the control": ({"setup": "{ h = 0 }"}, "limits, number 3: h is what the series of a spinodal gives"),
    "a minimum nowhere": ({"quantity": '"m"'}, "limits, number 3: m is an order parameter, whose series needs"),
    "a limit of the control": ({"parameter": '"h"', "to": '"0+"'}, "limits, number 3: a spinodal is at a value of the"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_names_the_key(name: str) -> None:
    keys, message = BAD[name]
    with pytest.raises(SetupError, match=message):
        parsed(declared(**keys), "mine")


def test_limits_are_of_actions() -> None:
    table = "\n[[limits]]\n" + "\n".join(f"{key} = {value}" for key, value in GOOD.items())
    with pytest.raises(SetupError, match="limits goes with the key action, not with potential"):
        parsed(Path(GLASS).read_text() + table, "mine")


def test_one_table_is_no_list() -> None:
    with pytest.raises(SetupError, match=r"limits is a list of tables: each begins with \[\[limits\]\]"):
        parsed(Path(find("classical/potts").module).read_text().replace("[[limits]]", "[limits]"), "mine")


def test_the_starter_and_the_classical_actions_declare_limits() -> None:
    assert parsed(starter("mine"), "mine").limits
    for theory in classical():
        assert bool(theory.limits) == (theory.evolution is None), theory.name


def test_a_derived_theory_declares_none() -> None:
    """One of them has a module called limits."""
    assert find("positional-semantic").limits == find("copy-head/softmax").limits == ()
