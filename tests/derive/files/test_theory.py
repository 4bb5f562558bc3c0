"""Theory files: what they hold becomes an action or a state evolution with its checks, or one message that names the key."""

import os
import re
import time

import pytest
from sympy import Rational, S, Symbol, cosh, log

from derive.action import EffectiveAction, SetupError
from derive.averages import GaussianAverage
from derive.catalogue import CLASSICAL, UnknownTheoryError, classical, find
from derive.files.algebra import BITS, FUNCTIONS, WORK
from derive.files.grammar import DEPTH
from derive.files.keys import KEYS, SIZE
from derive.files.theory import FORMULAS, parsed, read, starter
from derive.files.tokens import LENGTH, NESTING
from derive.state_evolution import StateEvolution

ACTION = {
    "theory": 'name = "mine"\nsummary = "a magnet"\naction = "m^2/2 - T*log(2*cosh(field))"\nwindow = ["1/2", 2]',
    "control.T": 'meaning = "temperature"',
    "parameters.h": 'meaning = "field"\ndefault = 0.25\nlower = -1\nupper = 1',
    "order_parameters.m": 'meaning = "magnetisation"\nlower = -1\nupper = 1',
    "definitions": 'field = "(m + h)/T"',
}
POTENTIAL = {
    "theory": 'name = "glass"\nsummary = "a glass"\nwindow = ["1/2", 2]\ndigits = 4\n'
    'potential = "r/2 - r*q/2 + (q^2 - 1)/(4*T^2) - E[log(2*cosh(x)), x: N(h/T, r)]"',
    "control.T": 'meaning = "temperature"',
    "parameters.h": 'meaning = "field"\ndefault = "1/2"',
    "overlaps.q": 'meaning = "overlap"\nconjugate = "r"',
}


def written(tables):
    return "\n\n".join(f"[{name}]\n{body}" for name, body in tables.items())


@pytest.fixture
def file(tmp_path):
    """Writes a theory file from its tables, or a text, and reads it."""

    def made(tables, **more):
        path = tmp_path / "mine.toml"
        path.write_text(tables if isinstance(tables, str) else written({**tables, **more}), encoding="utf-8")
        return read(path)

    return made


def changed(tables, name, old, new):
    assert old in tables[name]
    return {**tables, name: tables[name].replace(old, new)}


def test_an_action(file):
    action = file(ACTION).action()
    (m,), T = action.variables, action.control.symbol
    h = action.parameters[0].symbol
    assert isinstance(action, EffectiveAction)
    assert action.value == m**2 / 2 - T * log(2 * cosh((m + h) / T))
    assert (T.is_positive, h.is_positive, h.is_real, m.is_real) == (True, None, True, True)
    assert action.parameters[0].default == Rational(1, 4)
    assert action.window == (Rational(1, 2), S(2))
    assert (action.name, action.digits) == ("mine", 15)


def test_a_state_evolution(file):
    theory = file(POTENTIAL).state_evolution()
    q, r, T, h = (*theory.overlaps, *theory.conjugates, theory.control.symbol, theory.parameters[0].symbol)
    assert isinstance(theory, StateEvolution)
    assert (
        theory.potential.atoms(GaussianAverage).pop().measure
        == GaussianAverage(log(2 * cosh(Symbol("x", real=True))), (Symbol("x", real=True),), (h / T,), [[r]]).measure
    )
    assert theory.channel[r] == q / T**2
    assert theory.digits == 4


def test_averages_over_both_overlaps_and_conjugates_are_parted(file):
    """Updates average over what holds no average: the doubled potential has the same stationary points and values."""
    both = changed(POTENTIAL, "theory", "(q^2 - 1)/(4*T^2)", "E[log(1 + exp(y)), y: N(0, q)]")
    found = file(both)
    theory = found.state_evolution()
    assert [str(symbol) for symbol in theory.overlaps] == ["q", "r"]
    for value in (*theory.prior.values(), *theory.channel.values()):
        assert len({node.measure for node in value.atoms(GaussianAverage)}) <= 1
    assert [report.passed for report in found.derivation().check()] == [True, True]
    sector = '\n[[sectors]]\nname = "blind"\nvanishing = ["q"]'
    assert file(written(both) + sector).state_evolution().sectors[0].vanishing == theory.overlaps
    wrong = found.derivation().altered("doubled potential", lambda value: value + theory.overlaps[0])
    assert not all(report.passed for report in wrong.check())


def test_a_definition_may_have_the_name_of_a_step(file):
    chain = file({**ACTION, "definitions": 'bounds = "(m + h)/T"\nfield = "bounds"\npotential = "field"'}).derivation()
    assert len(chain) == 5


def test_the_checks_of_a_derivation_hold_and_can_fail(file):
    chain = file(ACTION).derivation()
    assert [step.name for step in chain.steps] == ["field", "action", "bounds of the order parameters"]
    assert all(step.checks for step in chain.steps)
    assert all(report.passed for report in chain.check())
    (m,) = (symbol for symbol in chain.value("action").free_symbols if symbol.name == "m")
    for step, change in (("field", lambda f: f + m / 10**6), ("action", lambda f: f - 2 * m**2)):
        failed = {report.check for report in chain.altered(step, change).check() if not report.passed}
        assert "the same numbers from the text, without SymPy" in failed
    assert any("outwards" in name for name in failed)


def test_everything_an_action_may_have(file):
    text = (
        written(changed(ACTION, "theory", "window", 'source = "a book"\nsize = "h"\ndigits = 20\nwindow'))
        + """
[[symmetries]]
name = "half turn"
image = { m = "m" }
[[phases]]
name = "down"
where = "m < 0"
[[phases]]
name = "up"
[[observables]]
name = "square"
value = "m^2 + 0*field"
meaning = "m squared"
crossover = "1/2"
[[closed_forms]]
kind = "instability"
value = "1 - h"
[[references]]
quantity = "instability"
value = "1.0"
source = "a book"
setup = { h = 0 }
"""
    )
    found = file(text)
    action = found.action()
    assert action.size == action.parameters[0].symbol
    assert action.digits == 20
    assert [phase.name for phase in action.phases] == ["down", "up"]
    assert action.observables[0].crossover == Rational(1, 2)
    assert action.closed_forms == (("instability", 1 - action.size),)
    assert found.references[0].value == "1.0"
    assert found.references[0].setup == {"h": "0"}
    assert found.derivation().step("action").source == "a book"


def dropped(tables, name):
    return {key: body for key, body in tables.items() if key != name}


BAD = {
    "no table at all": ("", "theory needs the key name"),
    "no TOML": ("[theory", "is no TOML"),
    "an unknown table": ({**ACTION, "paramters.x": ""}, "'paramters'; did you mean parameters"),
    "an unknown key": (changed(ACTION, "theory", "window", "windows"), "'windows'; did you mean window"),
    "a missing key": (changed(ACTION, "theory", 'summary = "a magnet"', ""), "theory needs the key summary"),
    "a missing bound": (
        changed(ACTION, "order_parameters.m", "upper = 1", ""),
        "order_parameters.m needs the key upper",
    ),
    "no value": (changed(ACTION, "theory", "action =", "source ="), "one of the keys action and potential"),
    "two values": (
        changed(ACTION, "theory", "window", 'potential = "m"\nwindow'),
        "one of the keys action and potential",
    ),
    "no order parameters": (dropped(ACTION, "order_parameters.m"), r"\[order_parameters.NAME\]"),
    "overlaps of an action": (
        {**ACTION, "overlaps.q": POTENTIAL["overlaps.q"]},
        "overlaps goes with the key potential",
    ),
    "no control": (dropped(ACTION, "control.T"), "one control"),
    "two controls": ({**ACTION, "control.U": 'meaning = "another"'}, "one control"),
    "text for a table": ('theory = "mine"', "theory has to be a table"),
    "a number for text": (changed(ACTION, "theory", '"mine"', "3"), "theory.name: this has to be text"),
    "a number for a flag": (
        changed(ACTION, "order_parameters.m", "lower = -1", "lower = -1\nedge = 1"),
        "true or false",
    ),
    "a flag for a formula": (
        changed(ACTION, "order_parameters.m", "lower = -1", "lower = true"),
        "has to be a formula",
    ),
    "a short list": (changed(ACTION, "theory", '["1/2", 2]', '["1/2"]'), "a list of 2"),
    "a table for a list": ({**ACTION, "phases": 'name = "up"'}, r"\[\[phases\]\]"),
    "an unread number": (
        changed(ACTION, "parameters.h", "0.25", '"1/2/3"'),
        "parameters.h.default: '1/2/3' is not a number",
    ),
    "an infinite bound": (changed(ACTION, "parameters.h", "upper = 1", "upper = inf"), "parameters.h.upper: 'inf'"),
    "a default out of range": (
        changed(ACTION, "parameters.h", "0.25", "5"),
        "parameters.h.default: h = 5 is out of range",
    ),
    "an empty range": (changed(ACTION, "parameters.h", "upper = 1", "upper = -1"), "nothing is in the range"),
    "an undeclared symbol": (changed(ACTION, "theory", "m^2/2", "mm^2/2"), "character 1: mm is not declared"),
    "a later definition": ({**ACTION, "definitions": 'field = "g/T"\ng = "m"'}, "definitions.field, character 1: g"),
    "an order parameter in a bound": (
        changed(ACTION, "order_parameters.m", "upper = 1", 'upper = "2 - m"'),
        "m is not",
    ),
    "a name twice": ({**ACTION, "definitions": 'T = "m"'}, "T is declared twice"),
    "two parameters of one name": ({**ACTION, "parameters.T": 'meaning = "again"'}, "T is declared twice"),
    "an empty name": (
        changed(ACTION, "theory", "name =", 'name = "" #'),
        r"theory\.name: a name has at least one letter",
    ),
    "two phases of one name": (
        written(ACTION) + 2 * '\n[[phases]]\nname = "a"',
        "phases.name: 'a' is the name of two of them",
    ),
    "a name that is a number": (
        changed({**ACTION, "parameters.pi": 'meaning = "no"'}, "theory", "m^2", "m^2"),
        "'pi' is no name",
    ),
    "a dangerous name": ({**ACTION, "definitions": '__class__ = "m"'}, "'__class__' is no name"),
    "a name in other letters": ({**ACTION, 'parameters."\u0442"': 'meaning = "no"'}, "is no name"),
    "an unbounded domain": (
        changed(ACTION, "order_parameters.m", "upper = 1", 'upper = "1/(T - T)"'),
        "divides by zero",
    ),
    "an infinite domain": (changed(ACTION, "order_parameters.m", "upper = 1", 'upper = "oo"'), "domains bounded"),
    "an empty domain": (changed(ACTION, "order_parameters.m", "upper = 1", "upper = -2"), "the range of m is empty"),
    "an empty window": (changed(ACTION, "theory", '["1/2", 2]', '[2, "1/2"]'), "the window is empty"),
    "a window below zero": (
        {**changed(POTENTIAL, "theory", '"1/2", 2', '"-1/2", 2'), "control.T": 'meaning = "field"\nlower = -1'},
        "begins above zero, not at -1/2",
    ),
    "a complex window": (changed(ACTION, "theory", '["1/2", 2]', '["1/2", "sqrt(h - 1)"]'), "no finite real number"),
    "a complex action": (changed(ACTION, "theory", "m^2/2", "log(m)"), "this is not real\n.*\n.*at h = 0.25, T ="),
    "a complex definition": ({**ACTION, "definitions": 'field = "sqrt(m)/T"'}, "field, character 1: this is not real"),
    "an average in an action": (changed(ACTION, "theory", "m^2/2", "E[m*z^2, z]"), "an action is a closed form"),
    "an average in an observable": (
        written(ACTION) + '\n[[observables]]\nname = "a"\nvalue = "E[z^2*m, z]"\nmeaning = ""',
        "an action is a closed form",
    ),
    "a minimum by itself": (
        changed(POTENTIAL, "theory", "(q^2", "M[z^2, z: (q, T)] + (q^2"),
        "stands inside of an average",
    ),
    "a kink in an action": (changed(ACTION, "theory", "m^2/2", "abs(m)"), "an action is smooth"),
    "an unknown size": (changed(ACTION, "theory", "window", 'size = "L"\nwindow'), "the size 'L' is none"),
    "a symmetry that is none": (
        written(ACTION) + '\n[[symmetries]]\nname = "a"\nimage = { m = "-m" }',
        "changes the action",
    ),
    "a symmetry of nothing": (
        written(ACTION) + '\n[[symmetries]]\nname = "a"\nimage = { T = "T" }',
        "no order parameter",
    ),
    "an unknown closed form": (written(ACTION) + '\n[[closed_forms]]\nkind = "fold"\nvalue = 1', "of the kinds"),
    "a phase without meaning": (written(ACTION) + '\n[[phases]]\nname = "a"\nwhere = "m"', "no condition"),
    "too many formulas": ({**ACTION, "definitions": "\n".join(f"d{k} = 1" for k in range(300))}, "a file may have"),
    "an unpaired overlap": (changed(POTENTIAL, "theory", "r*q/2", "r*q^2/2"), "not paired"),
    "a sector of nothing": (written(POTENTIAL) + '\n[[sectors]]\nname = "a"\nvanishing = ["x"]', "which is no overlap"),
    "brackets without end": ("a = " + "[" * 5_000, "brackets|no TOML"),
    "tables without end": ("a" + ".a" * 5_000 + " = 1", "a key has too many dots"),
    "a number without end": (changed(ACTION, "parameters.h", "0.25", "1" * 20_000), "no TOML|characters"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said_in_one_message(file, name):
    tables, message = BAD[name]
    begin = time.process_time()
    with pytest.raises(SetupError, match=message):
        file(tables)
    assert time.process_time() - begin < 2


@pytest.mark.parametrize("key", ["action = ", "window = ", "upper = ", "default = ", "field = "])
def test_nothing_in_a_file_is_executed(file, tmp_path, key):
    mark = tmp_path / "executed"
    code = f"__import__('pathlib').Path('{mark}').touch()"
    for body in (f'"{code}"', f'["{code}", 2]', f"QQQexec({code!r})QQQ".replace("Q", "'")):
        text = "\n".join(f"{key}{body}" if line.startswith(key) else line for line in written(ACTION).splitlines())
        assert text != written(ACTION)
        with pytest.raises(SetupError):
            file(text)
    assert not mark.exists()


def test_a_symmetry_that_cannot_be_proven_in_time_is_refused(file):
    """The image is the order parameter itself, which SymPy does not see at once."""
    image = '\n[[symmetries]]\nname = "a"\nimage = { m = "m + sin(m)^2 + cos(m)^2 - 1" }'
    assert file(written(changed(ACTION, "theory", "T*log(2*cosh(field))", "T")) + image).action().symmetries
    long = changed(ACTION, "theory", "m^2/2", "sum[tanh(k*m + h), k: (1, 60)]")
    begin = time.process_time()
    with pytest.raises(SetupError, match="cannot be proven"):
        file(written(long) + image)
    assert time.process_time() - begin < 2


def large(*formulas):
    return "\n".join(f'd{k} = "{text}"' for k, text in enumerate(formulas))


def average(*terms, by="+"):
    return changed(POTENTIAL, "theory", "log(2*cosh(x))", by.join(terms))


LARGE = {
    "definitions": written({**ACTION, "definitions": 'field = "m"\n' + large(*["m*T"] * 150)}),
    "a sum": written(changed(ACTION, "theory", "m^2/2", "sum[tanh(k*m + h), k: (1, 300)]")),
    "averages": written(changed(POTENTIAL, "theory", "(q^2", "sum[E[tanh(k*x), x: N(h/T, r)], k: (1, 80)] + (q^2")),
    "an average of a sum": written(average(*(f"tanh({k}*x)" for k in range(200)))),
    "an average of a product": written(average(*(f"tanh({k}*x + h)" for k in range(150)), by="*")),
    "functions inside functions": written(average("tanh(1 + h*" * 10 + "x" + ")" * 10)),
    "minima": written(average(*(f"M[tanh(z)^{k}, z: (x, 1)]" for k in range(1, 50)), by="*")),
}
ENDLESS = {
    "nested": large("m", *(f"sin(d{k} + {k})" for k in range(50))),
    "doubled": large("m", *(f"(d{k} + {k})*d{k}" for k in range(50))),
    "squared": large("10^4000", *(f"d{k}^2" for k in range(50))),
    "of large powers": large("m + 2", *(f"d{k}^2" for k in range(50))),
    "of large exponentials": large("m + 2", *(f"exp(d{k})" for k in range(20))),
}


@pytest.mark.parametrize("name", LARGE)
def test_the_largest_files_are_read_in_time(file, name):
    begin = time.process_time()
    file(LARGE[name])
    assert time.process_time() - begin < 2


@pytest.mark.parametrize("name", ENDLESS)
def test_definitions_that_grow_without_end(file, name):
    begin = time.process_time()
    with pytest.raises(SetupError, match=r"operations|binary digits|out of the range"):
        file(written({**ACTION, "definitions": 'field = "m"\n' + ENDLESS[name]}))
    assert time.process_time() - begin < 2


def test_files_that_are_none(tmp_path):
    with pytest.raises(SetupError, match="no such file"):
        read(tmp_path / "nothing.toml")
    with pytest.raises(SetupError, match="this is a directory"):
        read(tmp_path)
    with pytest.raises(SetupError):
        read(tmp_path / ("x" * 500))
    with pytest.raises(SetupError):
        read(tmp_path / "a\0b.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SetupError, match="UTF-8"):
        read(tmp_path / "bytes.toml")
    (tmp_path / "large.toml").write_text("#" * (SIZE + 1))
    with pytest.raises(SetupError, match=f"may have {SIZE}"):
        read(tmp_path / "large.toml")
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(SetupError, match="a device or a pipe"):
        read(tmp_path / "pipe.toml")
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    with pytest.raises(SetupError, match=r"symbolic links|no such file"):
        read(tmp_path / "loop.toml")
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    with pytest.raises(SetupError, match="a device or a pipe"):
        read(tmp_path / "zero.toml")
    (tmp_path / "old.toml").write_bytes(b"\xef\xbb\xbf" + written(ACTION).replace("\n", "\r\n").encode())
    assert read(tmp_path / "old.toml").name == "mine"


def test_the_catalogue_finds_files_and_modules(tmp_path, monkeypatch):
    path = tmp_path / "mine.toml"
    path.write_text(written(ACTION))
    theory = find(str(path))
    assert (theory.name, theory.summary, theory.asymptotics(), theory.choices) == (str(path), "a magnet", (), ())
    assert theory.problem() == theory.action()
    assert theory.prepared({"h": "1/2"}) == (theory.action(), {"h": "1/2"})
    path.write_text(written(POTENTIAL))
    assert find(str(path)).problem() == find(str(path)).state_evolution()
    with pytest.raises(TypeError, match="has a state evolution"):
        find(str(path)).action()
    module = "import sys\nfrom pathlib import Path\nfrom derive.files.theory import read\nFILE = read(Path(%r))\n"
    body = "derivation, state_evolution = FILE.derivation, FILE.state_evolution\n"
    (tmp_path / "a_theory_of_mine.py").write_text('"""A glass."""\n' + module % str(path) + body)
    monkeypatch.syspath_prepend(str(tmp_path))
    theory = find("module:a_theory_of_mine")
    assert (theory.summary, theory.problem()) == ("A glass.", find(str(path)).problem())
    for name, message in (("module:no_such_module", "cannot be imported"), ("module:json", "is no theory")):
        with pytest.raises(UnknownTheoryError, match=message):
            find(name)
    with pytest.raises(UnknownTheoryError, match="classical/potts"):
        find("classical/pots")
    assert {theory.name for theory in classical()} == {f"classical/{path.stem}" for path in CLASSICAL.glob("*.toml")}


def test_the_starter_runs_and_shows_every_table(file):
    found = file(starter("mine"))
    assert found.name == "mine"
    assert all(report.passed for report in found.derivation().check())
    for table in ("theory", "control", "parameters", "order_parameters", "definitions", "symmetries", "phases"):
        assert f"[{table}" in starter("mine")
    assert set(KEYS["theory"]) - {"potential"} <= set(starter("mine").replace("=", " ").split())


def test_the_page_on_theory_files_is_true(file):
    """Its examples are theories whose checks hold; it names every table, key and function, and the limits."""
    page = (CLASSICAL.parent.parent / "docs" / "theory-files.md").read_text(encoding="utf-8")
    examples = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 4
    for example in examples:
        assert all(report.passed for report in file(example).derivation().check())
    for table, keys in KEYS.items():
        assert table.removesuffix("[]").partition(".")[0] in page
        assert all(key in page for key in keys)
    words = set(re.findall(r"[A-Za-z]+", page))
    assert set(FUNCTIONS) <= words
    for limit in (LENGTH, NESTING, WORK, DEPTH, BITS, SIZE, FORMULAS):
        assert f"{limit:,}".replace(",", " ") in page.replace("\n", " ")


def test_a_covariance_of_numbers_has_variables():
    """Of size two and larger by all principal minors: the leading ones alone do not tell."""
    for rows, fine in (("((0, 0), (0, 1))", True), ("((0, 0), (0, -1))", False), ("((1, 1), (1, 1))", True)):
        text = written(POTENTIAL).replace("- E[", f"- E[x*y, (x, y): N((0, 0), {rows})] - E[")
        if fine:
            parsed(text, "mine")
        else:
            with pytest.raises(SetupError, match="nor is an eigenvalue"):
                parsed(text, "mine")


@pytest.mark.parametrize(
    "code, says",
    [
        ("1/0", r"cannot be imported: ZeroDivisionError: division by zero \(.*, line 1\)"),
        ("import sys\nsys.exit(0)", "cannot be imported: SystemExit"),
        ("def (:", "cannot be imported: SyntaxError"),
        ("x = 1", "is no theory"),
        (
            "def action(): return 3\ndef derivation(): return 4",
            "has to return a derive.derivation.Derivation, not a int",
        ),
        ("def action(): return 3\ndef derivation(): raise KeyError('x')", r"KeyError: 'x' \(.*, line 2\)"),
    ],
)
def test_what_a_module_does_wrong_is_one_message(tmp_path, monkeypatch, code, says):
    name = f"mine_{abs(hash(code))}"
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises((UnknownTheoryError, SetupError), match=says):
        find(f"module:{name}")


def test_a_module_whose_action_is_none(tmp_path, monkeypatch):
    (tmp_path / "mine_of_nothing.py").write_text(
        "from derive.catalogue import find\nderivation = find('classical/potts').derivation\ndef action(): return 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SetupError, match=r"action\(\) has to return a derive.action.EffectiveAction, not a int"):
        find("module:mine_of_nothing").action()
    with pytest.raises(UnknownTheoryError, match="cannot be imported"):
        find("module:..mine")
