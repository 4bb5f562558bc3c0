"""Hostile theory files on the command line, each in a process of its own: one message, in two seconds of CPU, and no more.

The many ways in which a file can be wrong are in test_theory.py, those in which a formula can be in test_grammar.py; here
is the table of what an attacker tries, with the cost of the whole program.
"""

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import spinodal

MAGNET = """
[theory]
name = "magnet"
summary = "a magnet"
action = "m^2/2 - T*log(2*cosh(m/T))"
window = ["1/2", 2]
[control.T]
meaning = "temperature"
[order_parameters.m]
meaning = "magnetisation"
lower = -1
upper = 1
"""
ACTION = "m^2/2 - T*log(2*cosh(m/T))"
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
