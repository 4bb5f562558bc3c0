"""Random input, the same from the same seed: mostly right, with something wrong, so that it gets deep into what reads it."""

import json
import signal
import tomllib
from contextlib import contextmanager

SECONDS = 2
NUMBERS = ("0", "1", "2", "3", "1/2", "-1", ".5", "1e3", "7.", "1e-7", "0.01", "10^9", "1e400", "123456789012345678901")
ODD = (
    "",
    "nan",
    "inf",
    "-0",
    "1/0",
    "0/0",
    "1e",
    "e5",
    "--1",
    "0x10",
    "1_0",
    "\u0663",
    "1,5",
    " 1",
    "1e99999",
    "1e-100000",
)
ODD += (
    "1e100001",
    "9" * 50,
    "9" * 5000,
    "1/" + "7" * 300,
    "True",
    "None",
    "1j",
    "\x00",
    "\udcff",
    "=",
    ":",
    "[[1]]",
    "[[1,0],[0,1]]",
)
NAMES = ("m", "m", "T", "T", "h", "k", "x", "pi", "e")
FUNCTIONS = (
    "exp",
    "log",
    "sqrt",
    "sinh",
    "cosh",
    "tanh",
    "sech",
    "asinh",
    "atanh",
    "sin",
    "cos",
    "atan",
    "erf",
    "erfc",
)
FUNCTIONS += ("H", "sigmoid", "softplus", "gamma", "loggamma", "lambertw", "W", "abs")
CHARACTERS = "0123456789.eE+-*/^()[],:<>=!&|'\"\\#$@~`{};_ \t\nmTxzsumNEM\u00e9\u03b1\u2212\udcff\x00"


class HangError(BaseException):
    """No `Exception`: what is tried must not be able to swallow it."""


@contextmanager
def quick(case):
    """Inside, `SECONDS` of processor time may pass; what goes wrong names the case."""

    def stop(*_):
        raise HangError(f"more than {SECONDS} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    except BaseException as error:
        error.add_note(f"from {case!r}")
        raise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def formula(rng, depth, names=NAMES):
    """The text of a formula, nearly always of the grammar."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(rng.choice((names, names, NUMBERS)))

    def part():
        return formula(rng, depth - 1, names)

    kind = rng.randrange(12)
    if kind < 5:
        return f"{part()} {rng.choice(['+', '-', '*', '/', '*', '+', '^', '**'])} {part()}"
    if kind == 5:
        return f"({part()})"
    if kind == 6:
        return f"-{part()}"
    if kind < 10:
        return f"{rng.choice(FUNCTIONS)}({part()})"
    if kind == 10:
        return f"{rng.choice(['max', 'min'])}({part()}, {part()})"
    bound = f"z{depth}"
    within = formula(rng, depth - 1, (*names, bound))
    forms = (
        f"E[{within}, {bound}]",
        f"E[{within}, {bound}: N({part()}, {part()})]",
        f"E[{within}, (u, {bound}): N(({part()}, 0), ((1, {part()}), ({part()}, 1)))]",
        f"M[{within}, {bound}: ({part()}, {part()})]",
        f"E[M[{within}, {bound}: (y, 1)], y]",
        f"sum[{within}, {bound}: ({rng.choice(NUMBERS)}, {rng.choice(NUMBERS)})]",
    )
    return rng.choice(forms)


def condition(rng):
    """The text of a condition, nearly always of the grammar."""
    compared = (
        f" {rng.choice(['<', '<=', '==', '>', '>=', '!='])} {formula(rng, 2)}" for _ in range(rng.choice((1, 1, 2)))
    )
    one = formula(rng, 2) + "".join(compared)
    kind = rng.randrange(6)
    return f"not ({one})" if kind == 0 else f"{one} {rng.choice(['and', 'or'])} {condition(rng)}" if kind == 1 else one


def spoiled(rng, text, most=3):
    """The text with up to ``most`` places cut, doubled, moved or filled with something strange."""
    for _ in range(max(0, rng.randint(-2, most))):
        i, j = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        j = min(j, i + rng.choice((1, 1, 5, 40)))
        strange = "".join(rng.choices(CHARACTERS, k=rng.choice((1, 1, 2, 8))))
        text = rng.choice(
            (
                text[:i] + text[j:],
                text[:i] + strange + text[i:],
                text[:i] + strange + text[j:],
                text[:j] + text[i:],
                text[:i] + rng.choice((*FUNCTIONS, *NAMES, *NUMBERS, *ODD)) + text[j:],
                text[:i] + rng.choice("([-+") * rng.choice((1, 31, 200)) + text[i:],
            )
        )
    return text


def number(rng):
    """The text of a number, or of something that looks like one."""
    text = rng.choice((*NUMBERS, str(rng.randint(-9, 999)), f"{rng.uniform(0, 9):.3f}", *ODD))
    return spoiled(rng, text, 1)


def theory(rng, text):
    """A theory file with some of its values, keys and tables replaced, left out or put elsewhere, and then perhaps spoiled."""
    data = tomllib.loads(text)
    for _ in range(rng.randint(0, 4)):
        _changed(rng, data)
    written = "".join(_lines(data))
    return spoiled(rng, written) if rng.random() < 0.3 else written


def _changed(rng, data):
    """Change one thing in a table or list, or in what it holds."""
    while data and isinstance(inside := data[key := rng.choice(_keys(data))], dict | list) and rng.random() < 0.9:
        data = inside
    if not data:
        return
    kind, names = rng.randrange(8), (*NAMES, "q", "r", "D", "s", "weights")
    if kind == 0:
        del data[key]
    elif kind == 1 and isinstance(data, dict):
        data[rng.choice((*names, *FUNCTIONS, "window", "lower", "a b", "x__y", "", "\u00e9"))] = data.pop(key)
    elif kind == 2:
        data[key] = data[rng.choice(_keys(data))]
    elif kind == 3:
        data[key] = rng.choice(
            (True, 7, -1, 0, 10**30, [], {}, [1, [2]], "", [""] * 300, {"m": "T"}, Float("nan"), Float("1e5"))
        )
    elif kind == 4:
        data[key] = number(rng)
    elif isinstance(data[key], str):
        data[key] = spoiled(rng, data[key], 1) if kind == 5 else formula(rng, 3, names) if kind == 6 else condition(rng)


def _keys(data):
    return list(data) if isinstance(data, dict) else range(len(data))


class Float(str):
    """The text of a number, written without quotes."""


def _lines(data, path=()):
    """A table in TOML: its values first, then the tables in it."""
    for key, value in data.items():
        if not isinstance(value, dict):
            yield f"{json.dumps(key)} = {_text(value)}\n"
    for key, value in data.items():
        if isinstance(value, dict):
            yield f"[{'.'.join(map(json.dumps, (*path, key)))}]\n"
            yield from _lines(value, (*path, key))


def _text(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_text(inside)}" for key, inside in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return value if isinstance(value, Float) else json.dumps(value)


HEAD = {"P": "330", "L": "32", "V": "8", "gamma_w": "1/2", "gamma_g": "2", "T": "1e-2"}
THEORIES = {  # parameters that are right, the control first
    "copy-head/softmax": HEAD,
    "copy-head/linear": HEAD,
    "positional-semantic": {"alpha": "1.5", "omega": "1/3", "sigma": ".4", "lambda": "0.02", "A_11": "2/3"},
    "classical/landau-4": {"a": "-1", "b": "1"},
    "classical/curie-weiss-in-field": {"T": "1/2", "h": "1e-3"},
    "classical/potts": {"T": ".3", "q": "5/2"},
    "classical/sherrington-kirkpatrick": {"T": "1/2", "h": "0.2"},
}
QUANTITIES = ("coexistence", "spinodal", "instability", "e-positional", "m", "s", "oo", "nothing")
RANGES, AXES = ("{name}={}:{}",), ("{name}={}:{}:{}", "{name}={}:{}:{}:log", "{name}={}:{}")
OPTIONS = {
    "minima": {"--digits": ("{}",), "--sector": ("{}", "semantic")},
    "transitions": {"--digits": ("{}",), "--over": RANGES},
    "asymptotics": {
        "--digits": ("{}",),
        "--upto": ("{}",),
        "--limit": ("{name}={}", "{name}={}-", "{name}={}+", "{name}=oo", "{}"),
        "--order": ("{}",),
        "--phase": ("{}", "m"),
    },
    "diagram": {"--digits": ("{}",), "--x": RANGES, "--y": (*RANGES, *AXES)},
    "scan": {"--digits": ("{}",), "--over": AXES, "--jobs": ("{}",), "--out": ("sweep",)},
    "simulate": {
        **dict.fromkeys(("--seeds", "--restarts", "--chains", "--steps", "--rate", "--share", "--tolerance"), ("{}",)),
        **dict.fromkeys(("--batch", "--rank", "--chunk", "--workers"), ("{}",)),
        "--sweep": AXES,
        "--method": ("lbfgs", "adam", "gd", "mala", "sgld", "message-passing"),
    },
}


def command(rng, theories):
    """The words of a command: a verb, a theory, parameters and options, some of whose numbers are strange."""
    verb, theory = rng.choice(list(OPTIONS)), rng.choice(theories)
    given, strange = THEORIES[theory], rng.choice((0.02, 0.1, 0.4))

    def some(text):
        return number(rng) if rng.random() < strange else text

    def filled(form):
        name = some(rng.choice(list(given)))
        return form.format(some("1/4" if ":" in form else "3"), some("1/2"), some("3"), name=name)

    needed = {"diagram": ("--x", "--y"), "scan": ("--over", "--out")}.get(verb, ())
    options = [option for option in OPTIONS[verb] if option in needed or rng.random() < 0.2]
    words = [word for option in options for word in (option, filled(rng.choice(OPTIONS[verb][option])))]
    swept = {word.partition("=")[0] for word in words}
    left_out = {*swept, *(list(given)[:1] if verb in ("transitions", "asymptotics", "simulate") else ()), some("h")}
    words += [f"{some(name)}={some(value)}" for name, value in given.items() if name not in left_out]
    if verb == "asymptotics" and rng.random() < 0.8:
        words.append(rng.choice(QUANTITIES))
    if rng.random() < strange:
        words.insert(rng.randrange(len(words) + 1), spoiled(rng, rng.choice(["L=3", "--digits", "--json", "--quiet"])))
    return [verb, theory, *words]
