"""The copy head's derivations: every check passes, follows a changed model, and can fail."""

import pytest
from sympy import Basic, MatrixBase, Rational, Tuple

from derive.catalogue import find
from derive.copy_head import linear, softmax
from derive.copy_head.model import L, Model, P, T, V, gamma_g, gamma_w
from derive.derivation import Derivation

HEADS = {"linear": linear, "softmax": softmax}
MODELS = {
    "as published": Model(),
    "loss 1/L": Model(loss_factor=1 / L),
    "shift 2": Model(shift=2),
    "gamma_w doubled": Model(weight_decay=2 * gamma_w),
    "all at once": Model(loss_factor=1 / L, weight_decay=2 * gamma_w, score_decay=3 * gamma_g, shift=2),
}
SWAPPED = {L: V, V: L}


def entries(value: Basic):
    if isinstance(value, Tuple | MatrixBase):
        return [item for part in value for item in entries(part)]
    return [value]


def rebuilt(value: Basic, change):
    """``value`` with ``change`` applied to its scalar entries."""
    return Tuple(*(rebuilt(item, change) for item in value)) if isinstance(value, Tuple) else change(value)


MUTATIONS = {
    "times 8/7": lambda value: rebuilt(value, lambda item: Rational(8, 7) * item),
    "V and L swapped": lambda value: value.xreplace(SWAPPED),
    "first term dropped": lambda value: rebuilt(value, lambda item: item.func(*item.args[1:]) if item.is_Add else item),
    "last term dropped": lambda value: rebuilt(value, lambda item: item.func(*item.args[:-1]) if item.is_Add else item),
}


TWO = ("as published", "all at once")  # the others change one place each


@pytest.mark.parametrize("model", [pytest.param(n, marks=[pytest.mark.slow] * (n not in TWO)) for n in MODELS])
@pytest.mark.parametrize("head", HEADS)
def test_every_check_passes(head, model):
    derivation = HEADS[head].derivation(MODELS[model])
    quick = model != "as published"
    failed = [f"{r.step}: {r.check}: {r.detail}" for r in derivation.check(quick=quick) if not r.passed]
    assert not failed


@pytest.mark.parametrize("head", HEADS)
def test_every_step_has_a_check_and_a_reason(head):
    for step in HEADS[head].derivation().steps:
        assert step.checks, step.name
        assert step.reason, step.name


def catching_check(derivation: Derivation, name: str) -> str | None:
    """A check that fails: the mutated step's own are tried first, and the quick ones of every step before the slow."""
    order = sorted(derivation.steps, key=lambda step: step.name != name)
    for quick in (True, False):
        for step in order:
            for check in (check for check in step.checks if check.quick is quick):
                if not derivation.run(step, check).passed:
                    return f"{step.name}: {check.name}"
    return None


def mutants(head: str, every: int):
    """The derivation with one step changed; of each step's changes, one in ``every``, each kind of change in its turn."""
    derivation = HEADS[head].derivation()
    for place, step in enumerate(derivation.steps):
        original = derivation.value(step.name)
        changes = [(label, change) for label, change in MUTATIONS.items() if change(original) != original]
        first = place % min(every, len(changes))
        for label, change in changes[first::every]:
            yield step.name, label, derivation.altered(step.name, change)


@pytest.mark.parametrize(
    ("head", "every"),
    [
        ("linear", len(MUTATIONS)),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (("softmax", len(MUTATIONS)), ("linear", 1), ("softmax", 1))
        ),
    ],
)
def test_every_mutation_is_caught(head, every, capsys):
    survivors, steps = [], set()
    rows = []
    for name, label, mutant in mutants(head, every):
        caught = catching_check(mutant, name)
        rows.append(f"{name:28} {label:20} {caught or 'SURVIVED'}")
        steps.add(name)
        if caught is None:
            survivors.append(rows[-1])
    with capsys.disabled():
        print(f"\nmutations of copy-head/{head}: step, mutation, check that caught it", *rows, sep="\n")
    assert not survivors
    assert steps == {step.name for step in HEADS[head].derivation().steps}


# A change of the model in one place, and what it must do to the action. With kappa the loss factor,
# F(kappa; gamma_w, gamma_g, T) is homogeneous of degree one in (kappa, gamma_w, gamma_g, T).
RULES = {
    "loss 1/L": lambda value: 2 * value.subs({gamma_w: gamma_w / 2, gamma_g: gamma_g / 2, T: T / 2}, simultaneous=True),
    "shift 2": lambda value: value,
    "gamma_w doubled": lambda value: value.subs(gamma_w, 2 * gamma_w),
}


@pytest.mark.parametrize("change", RULES)
@pytest.mark.parametrize("head", HEADS)
def test_the_action_follows_the_model(head, change):
    published = HEADS[head].action()
    changed = HEADS[head].action(MODELS[change])
    point = {
        L: Rational(9),
        V: Rational(4),
        P: Rational(70),
        gamma_w: Rational(3, 5),
        gamma_g: Rational(7, 4),
        T: Rational(1, 6),
    }
    point |= {order.symbol: Rational(3, 8) + index for index, order in enumerate(published.order_parameters)}
    expected = RULES[change](published.value).subs(point)
    assert abs((changed.value.subs(point) - expected).evalf(40)) < Rational(1, 10**35)
    if change != "shift 2":
        assert abs((changed.value - published.value).subs(point).evalf(40)) > Rational(1, 100)


@pytest.mark.parametrize("head", HEADS)
def test_the_action_is_the_last_step_and_stays_exact(head):
    action, derivation = find(f"copy-head/{head}").action(), find(f"copy-head/{head}").derivation()
    assert action.value == derivation.value(f"{head} action")
    bound = action.subs(L=32, V=8, gamma_w="1/3", gamma_g=2, T=0)
    assert bound.value.free_symbols == {P, *action.variables}
    assert not bound.parameters
    assert bound._repr_latex_().startswith("$")
