"""Hostile theory files on the command line, each in a process of its own: one message, in two seconds of CPU, and no more.

The many ways in which a file can be wrong are in test_theory.py, those in which a formula can be in test_grammar.py; here
is the table of what an attacker tries, with the cost of the whole program.
"""

import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sympy import cosh, log

import spinodal
from derive.action import SetupError
from derive.files.theory import parsed
from tests.derive.files.texts import ACTION, GLASS, MAGNET, potential

MARK = "executed"
SECONDS = 2.0


def action(formula):
    return MAGNET.replace(ACTION, formula)


def line(key, value):
    """The file with another value in the first line of that key."""
    return re.sub(rf"(?m)^{key} = .*$", lambda _: f"{key} = {value}", MAGNET, count=1)


HOSTILE = {
    "code in a formula": (action(f"__import__('os').system('touch {MARK}')"), "character 1"),
    "code behind an attribute": (action("m.__class__.__mro__[1].__subclasses__()"), "character"),
    "code in a name of a function": (action(f"eval(open('{MARK}', 'w'))"), "character"),
    "code for SymPy": (action(f"sympify(exec(open('{MARK}', 'w').close()))"), "character"),
    "code in a bound": (line("upper", f"\"__import__('pathlib').Path('{MARK}').touch()\""), "order_parameters.m.upper"),
    "code in a name": (MAGNET.replace("control.T", f"control.\"exec(open('{MARK}', 'w').close())\""), "is no name"),
    "an expression of ten megabytes": (action("m + " * 2_500_000 + "m"), "64"),
    "a number of ten megabytes": (line("lower", "-" + "1" * 10_000_000), "64"),
    "brackets 100 000 deep": (action("(" * 100_000 + "m" + ")" * 100_000), "64|brackets"),
    "brackets 2 000 deep": (action("(" * 1_900 + "m" + ")" * 1_900), "brackets"),
    "definitions 100 000 deep": (MAGNET + "[definitions]\n" + "\n".join(f'd{k} = "m"' for k in range(100_000)), "64"),
    "powers of powers": (action("9^9^9^9^9*m"), "digits|large"),
    "a sum without end": (action("sum[m^k, k: (1, 10^12)]"), "sum|terms|operations"),
    "a missing key": (MAGNET.replace("window", "# window"), "needs the key window"),
    "a missing table": (MAGNET.partition("[order_parameters.m]")[0], r"\[order_parameters.NAME\]"),
    "a wrong type": (line("window", "true"), "theory.window: this has to be a list"),
    "an undeclared symbol": (action("m^2/2 - T*k"), "k is not declared"),
    "an unbounded domain": (line("upper", '"1/0"'), "divides by zero"),
    "an infinite domain": (line("upper", "inf"), "bounded|finite|'inf'"),
    "values that are not real": (action("sqrt(m - 5)"), "this is not real"),
    "values that are not finite": (action("log(m - m)"), "not"),
    "no text at all": ("\x00\xff" * 1000, "is no TOML|UTF-8"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_costs_one_message(name, tmp_path):
    text, says = HOSTILE[name]
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    outcome = subprocess.run(
        [sys.executable, "-m", "spinodal", "minima", "mine.toml", "T=1"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(spinodal.__file__).parent)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("spinodal: ")
    assert re.search(says, outcome.stderr), outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert len(outcome.stderr) < 1000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.toml"]
    assert spent < SECONDS


def named(name):
    """The file with another name for its control."""
    return MAGNET.replace("control.T", f"control.{name}").replace("T*log", f"{name}*log").replace("m/T", f"m/{name}")


REFUSED = {
    "a Cyrillic m": (action("\u043c^2/2"), r"U\+043C"),
    "a wide m": (action("\uff4d^2/2"), r"U\+FF4D"),
    "a Cyrillic name": (MAGNET.replace("parameters.m", 'parameters."\u043c"'), "is no name"),
    "a Greek letter": (action("\u03b1*m^2"), r"U\+03B1"),
    "a space of no width": (action("m\u200b^2"), r"U\+200B"),
    "text from right to left": (action("m^2\u202e/2"), r"U\+202E"),
    "a space that does not break": (action("m^2\u00a0/2"), r"U\+00A0"),
    "a typographic minus": (action("m^2 \u2212 T"), r"U\+2212"),
    "a superscript": (action("m\u00b2/2"), r"U\+00B2"),
    "an Arabic digit": (action("m^\u0662"), r"U\+0662"),
    "a tower of powers": (action("m*9^9^9^9"), "binary digits"),
    "a power of ten digits": (action("m*10^(10^10)"), "binary digits"),
    "a power far below one": (action("m*2^(-10^12)"), "binary digits"),
    "a power that is a fraction": (action("(2/3)^(10^7/3)*m"), "binary digits"),
    "a degree of a billion": (action("m^(10^9)"), "binary digits"),
    "a degree of a hundred thousand": (action("(1 + m)^(10^5)"), "binary digits"),
    "a sum of a billion terms": (action("sum[m^k, k: (1, 10^9)]"), "sum runs between"),
    "a sum from far below": (action("sum[m^k, k: (-10^9, -1)]"), "sum runs between"),
    "a sum in a sum": (action("sum[sum[m^(j*k), j: (1, 200)], k: (1, 200)]"), "10000 operations"),
    "three sums in one": (action("sum[m^k, k: (1, 100), j: (1, 100), i: (1, 100)]"), "10000 operations"),
    "a sum up to a half": (action("sum[m^k, k: (1, 1/2)]"), "whole numbers"),
    "a sum up to a name": (action("sum[m^k, k: (1, m)]"), "whole numbers"),
    "a sum over a pole": (action("sum[m/(k - 3), k: (1, 5)]"), "divides by zero"),
    "a sum of towers": (action("sum[k^k^k*m, k: (1, 9)]"), "binary digits"),
    "an average over five": (potential("q*r + E[a + b + c + d + f, a, b, c, d, f]"), "one to 4"),
    "an average in an average": (potential("q*r + E[E[a*b, a], b]"), "inside of an average"),
    "an average in an action": (action("m^2 + E[m*z, z]"), "closed form"),
    "an average over one thing twice": (potential("q*r + E[a, a, a]"), "different variables"),
    "an average over an overlap": (potential("q*r + E[q, q]"), "has a meaning already"),
    "an average over nothing": (potential("E[q]"), "needs a formula and its variables"),
    "an empty average": (potential("E[]"), "has to stand here"),
    "a variance below zero": (GLASS.replace("N(1/T, r)", "N(1/T, -1)"), "variance is not negative"),
    "a covariance of nothing": (potential("q*r - E[x*y*q, (x, y): N((0, 0), ((1, 2), (2, 1)))]"), "eigenvalue"),
    "a lopsided covariance": (potential("q*r - E[x*y, (x, y): N((0, 0), ((1, 2), (3, 1)))]"), "not symmetric"),
    "a width of zero": (potential("q*r - E[M[z^2, z: (x, 0)], x: N(0, r)]"), "width of a minimum is positive"),
    "a minimum outside": (potential("q*r/2 - M[z^2, z: (q, r)]"), "inside of an average"),
    "a minimum in a minimum": (potential("q*r - E[M[M[z^2, z: (w, 1)], w: (x, 1)], x]"), "another minimum"),
    "a potential without a product": (potential("r/2 - E[log(2*cosh(x)), x: N(1/T, r)]"), r"q and r are not paired"),
    "a wall of no size": (GLASS + "wall = -1\n", "overlaps.q.wall"),
    "a wall that the control moves": (GLASS + 'wall = "T"\n', "T is not declared"),
    "a long fraction": (line("upper", '"' + "9" * 4000 + "/" + "7" * 3999 + '"'), "8000 characters"),
    "an exponent of nine digits": (line("upper", '"1e-999999999"'), "exponent"),
    "a date": (line("upper", "1979-05-27"), "has to be a formula"),
    "a table for a number": (line("upper", "{ a = 1 }"), "has to be a formula"),
    "three thousand minus signs": (action("-" * 3000 + "m"), "60 operations"),
    "three thousand plus signs": (action("+" * 3000 + "m"), "60 operations"),
    "powers 900 deep": (action("^".join(["m"] * 900)), "60 operations"),
    "exponentials of exponentials": (action("exp(" * 29 + "m" + ")" * 29), "out of the range"),
    "a key twice": (MAGNET.replace("lower = -1", "lower = -1\nlower = -2"), "is no TOML"),
    "a table twice": (MAGNET + '[control.T]\nmeaning = "again"\n', "is no TOML"),
    "two controls": (MAGNET + '[control.U]\nmeaning = "another"\n', "one control"),
    "a name twice": (MAGNET + '[parameters.m]\nmeaning = "again"\n', "declared twice"),
    "lists 20 000 deep": (MAGNET + "x = " + "[" * 20_000 + "]" * 20_000, "brackets inside each other"),
    "tables 5 000 deep": (MAGNET + "x = " + "{a=" * 5_000 + "1" + "}" * 5_000, "brackets inside each other"),
    "a table for each byte": ("[[a]]\n" * 10_000, "has no key 'a'"),
    "2 500 phases": (MAGNET + "".join(f"[[phases]]\nname='p{k}'\n" for k in range(2_500)), "200"),
    "definitions in a circle": (MAGNET + "[definitions]\na = 'b'\nb = 'a'\n", "b is not declared"),
    "definitions that double": (
        MAGNET + "[definitions]\nd0 = 'm + m^2'\n" + "".join(f"d{k} = 'd{k - 1}*d{k - 1}'\n" for k in range(1, 30)),
        "binary digits",
    ),
    "a NUL": (MAGNET.replace("magnet", "mag\0net"), "is no TOML"),
    "a NUL that is written": (action("m\\u0000^2"), "character 2"),
    "a summary that a terminal obeys": (line("summary", '"\\u001b[31mred"'), r"U\+001B"),
    "a name that a terminal obeys": (line("name", '"a\\u0007"'), r"U\+0007"),
    "a table that a terminal obeys": (MAGNET.replace("control.T", r'control."\u001b[31mT"'), r"x1b"),
    "a name in two lines": (line("name", '"a\\nb"'), "one line"),
    "a mark in the middle": (MAGNET + "\ufeff", "is no TOML"),
    "a condition of numbers": (MAGNET + "[[phases]]\nname = 'a'\nwhere = '1 < 2'\n", "always true, or never"),
    "a condition that is none": (MAGNET + "[[phases]]\nname = 'a'\nwhere = 'm'\n", "no condition"),
    "300 nots": (MAGNET + f"[[phases]]\nname = 'a'\nwhere = '{'not ' * 300}m > 0'\n", "60 conditions"),
    "an inversion": (MAGNET + "[[symmetries]]\nname = 'a'\nimage = { m = '1/m' }\n", "changes the action"),
    "an observable that divides by zero": (
        MAGNET + "[[observables]]\nname = 'a'\nvalue = '1/(m - m)'\nmeaning = 'b'\n",
        "divides by zero",
    ),
    "a window of one point": (line("window", "[1, 1]"), "window is empty"),
    "a window outside of the range": (MAGNET.replace("[order", "upper = 1\n[order"), "leaves the range"),
    "a window below the range": (line("window", "[-1, 2]"), "leaves the range of the control, T > 0"),
    "a bound that moves with itself": (line("upper", '"m"'), "m is not declared"),
    "bounds that swap": (line("upper", "-2"), "is empty"),
    "a name of a dunder": (
        named('"__class__"').replace('"__class__"*', "T*").replace('/"__class__"', "/T"),
        "is no name",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_file_is_refused_by_name(name):
    text, says = REFUSED[name]
    begin = time.process_time()
    with pytest.raises(SetupError, match=says) as refused:
        parsed(text, "mine")
    assert time.process_time() - begin < SECONDS
    assert len(str(refused.value)) < 1000
    assert all(c.isprintable() or c == "\n" for c in str(refused.value))


@pytest.mark.parametrize(
    "name",
    ["lambda", "I", "E", "S", "N", "O", "Q", "M", "W", "sum", "exp", "gamma", "eval", "None", "import", "oo", "nan"],
)
def test_any_word_is_a_name(name):
    """Those of Python, of SymPy and of the grammar itself: each is the symbol that the file declares."""
    action = parsed(named(name), "mine").action()
    symbol = action.control.symbol
    (m,) = action.variables
    assert symbol.name == name
    assert action.value == m**2 / 2 - symbol * log(2 * cosh(m / symbol))


@pytest.mark.slow
def test_a_curve_that_is_flat_to_all_digits_is_degenerate():
    """Of m^10000 no digit is left of the slope beside zero."""
    from numerics import transitions
    from numerics.points import Status

    found = parsed(action("((1 + m)^100)^100"), "mine").action()
    assert transitions.transitions(found, found.setup({}), digits=15).status is not Status.OK
