"""Strange formulas, theory files and command lines: each is read, or refused with one message, in two seconds.

A hundred thousand in `make test-all`, some hundred in `make test`, all in this process; on the command line, what solves is
replaced by what gives up at once, since solving has tests of its own.
"""

import io
import random
from contextlib import redirect_stderr, redirect_stdout
from functools import cache

import pytest
from mpmath import mpf
from sympy import Symbol

import spinodal
from derive.action import SetupError
from derive.catalogue import CLASSICAL, Theory, find
from derive.files.algebra import Budget
from derive.files.grammar import condition, expression, numeric
from derive.files.theory import parsed, starter
from derive.present import as_text
from numerics.points import SolverError
from tests.fuzz import cases

SYMBOLS = {name: Symbol(name, real=True) for name in "mhkx"} | {"T": Symbol("T", positive=True)}
VALUES = {name: mpf(place) / 7 for place, name in enumerate(SYMBOLS, 1)}
FILES = [starter("mine"), *(path.read_text(encoding="utf-8") for path in sorted(CLASSICAL.glob("*.toml")))]
SOLVERS = ("numerics.asymptotics.ladder", "numerics.diagram.diagram", "numerics.evolution_asymptotics.law_ladders")
SOLVERS += ("numerics.limits.limit_report", "numerics.scan.scan", "simulate.experiment.run")
CHEAP = [
    "copy-head/softmax",
    "classical/landau-4",
    "classical/curie-weiss-in-field",
    "classical/sherrington-kirkpatrick",
]
FEW = 300


def cases_of(few, block, blocks):
    """Random numbers for ``few`` cases, and for ``blocks`` slow tests of ``block`` cases."""
    slow = (pytest.param(range(k * block, (k + 1) * block), marks=pytest.mark.slow) for k in range(blocks))
    return pytest.mark.parametrize("seeds", [range(few), *slow], ids=str)


def understood(read, text, *how):
    """Whether ``text`` is read; if not, the refusal says where."""
    with cases.quick(text):
        try:
            read(text, *how)
        except SetupError as error:
            told = str(error)
        else:
            return True
    assert told.startswith("it")
    return False


@cases_of(1000, 20_000, 3)
def test_a_formula_is_read_or_refused(seeds):
    read = 0
    for rng in map(random.Random, seeds):
        text = cases.spoiled(rng, cases.formula(rng, rng.randint(1, 6)))
        read += understood(expression, text, SYMBOLS, "it", Budget())
        understood(numeric, text, VALUES, "it")
    assert 0.2 < read / len(seeds) < 0.8


@cases_of(300, 10_000, 1)
def test_a_condition_is_read_or_refused(seeds):
    read = 0
    for rng in map(random.Random, seeds):
        text = cases.spoiled(rng, cases.condition(rng))
        read += understood(condition, text, SYMBOLS, "it", Budget())
    assert 0.2 < read / len(seeds) < 0.8


@cases_of(150, 5_000, 3)
def test_a_theory_file_is_read_or_refused(seeds):
    read = 0
    for rng in map(random.Random, seeds):
        text = cases.theory(rng, rng.choice(FILES))
        read += understood(lambda text: as_text(parsed.__wrapped__(text, "it").derivation()), text)
    assert 0.2 < read / len(seeds) < 0.8


@pytest.fixture
def theories(monkeypatch, tmp_path, seeds):
    """Theories that are built already; what would solve them gives up."""

    def gives_up(*_, **__):
        raise SolverError("it gives up")

    monkeypatch.setattr(spinodal, "_solver", lambda *_: gives_up)
    for name in SOLVERS:
        monkeypatch.setattr(name, gives_up)
    for name in ("asymptotics", "derivation", "problem"):
        monkeypatch.setattr(Theory, name, cache(getattr(Theory, name)))
    monkeypatch.chdir(tmp_path)
    chosen = list(cases.THEORIES) if len(seeds) > FEW else CHEAP
    for theory in map(find, chosen):
        theory.problem(), theory.asymptotics()
    return chosen


def outcome(words):
    """Exit code, output and messages of a command; standard error takes what is no text, as Python's own does."""
    told = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")
    with redirect_stdout(io.StringIO()) as output, redirect_stderr(told), pytest.raises(SystemExit) as stopped:
        spinodal.main(words)
    told.seek(0)
    return stopped.value.code, output.getvalue(), told.read()


@cases_of(FEW, 5_000, 3)
def test_a_command_line_is_understood_or_refused(seeds, theories):
    read = 0
    for rng in map(random.Random, seeds):
        words = cases.command(rng, theories)
        with cases.quick(words):
            code, output, told = outcome(words)
            assert (code, output) in ((spinodal.BAD_INPUT, ""), (spinodal.NOT_REACHED, "")), told
            assert told.startswith("spinodal: ")
            assert told.count("\n") == 1
        read += "it gives up" in told
    assert 0.1 < read / len(seeds) < 0.8
