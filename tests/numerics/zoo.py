"""Actions with exact answers: one zoo for the tests of points, branches and transitions."""

from sympy import Eq, Ne, Rational, S, Symbol, cosh, exp, log, symbols

from derive.action import EffectiveAction, Observable, OrderParameter, Parameter, Phase, Symmetry

x, y, z, t = symbols("x y z t", real=True)
a = Symbol("a", positive=True)
b = Symbol("b", positive=True)
size = Symbol("size", positive=True)
field = Symbol("field", real=True)
scale = Symbol("scale", positive=True)

MIRROR = Symmetry("mirror", {x: -x})


def box(symbol, half_width):
    return OrderParameter(symbol, "an order parameter", -S(half_width), S(half_width))


WINDOW = (Rational(1, 100), S(10))


def action(value, order_parameters, control=a, window=WINDOW, lower=S.Zero, **more):
    driver = Parameter(control, "the control", lower=lower)
    return EffectiveAction("zoo", value, order_parameters, driver, more.pop("parameters", ()), window, **more)


def landau_six(**more):
    """a x^2/2 - x^4/4 + x^6/6: fold at a = 1/4, coexistence at 3/16; the instability of 0 at a = 0 is subcritical."""
    phases = (Phase("zero", Eq(x, 0)), Phase("ordered", Ne(x, 0)))
    value = a * x**2 / 2 - x**4 / 4 + x**6 / 6
    return action(value, (box(x, 2),), symmetries=(MIRROR,), phases=phases, **more)


def shifted_landau_six():
    """The same with a - 1 for a, so that the subcritical instability, at a = 1, lies at a positive control."""
    return action((a - 1) * x**2 / 2 - x**4 / 4 + x**6 / 6, (box(x, 2),), symmetries=(MIRROR,))


def pitchfork():
    """(a - 1) x^2/2 + x^4/4: second order at a = 1."""
    return action((a - 1) * x**2 / 2 + x**4 / 4, (box(x, 4),), symmetries=(MIRROR,))


def curie_weiss():
    """x = tanh(a x): second order at a = 1."""
    return action(x**2 / 2 - log(cosh(a * x)) / a, (box(x, 2),), symmetries=(MIRROR,))


def curie_weiss_in_field():
    """x = tanh(b x + field) at inverse temperature b, driven by the field: spinodals in closed form, coexistence at 0."""
    value = b * x**2 / 2 - log(cosh(b * x + field))
    return action(
        value,
        (box(x, 2),),
        control=field,
        window=(S(-2), S(2)),
        lower=S(-10),
        parameters=(Parameter(b, "inverse temperature"),),
        phases=(Phase("down"), Phase("up")),
    )


def cusp():
    """x^4/4 - (size - 2) x^2/2 - (a - 3) x: spinodals at a = 3 -+ 2 ((size - 2)/3)^(3/2), end point x = 0, a = 3, size = 2."""
    return action(
        x**4 / 4 - (size - 2) * x**2 / 2 - (a - 3) * x,
        (box(x, 6),),
        parameters=(Parameter(size, "size"),),
        size=size,
        phases=(Phase("low"), Phase("high")),
    )


def isolated_well():
    """A single well for every control, and a well that opens at x = 5 only for a between 2 and 3 and is deeper in between.

    F' = x ((x - 5)^2 + (a - 2)(a - 3)): the isola (x - 5)^2 + (a - 5/2)^2 = 1/4.
    """
    value = x**4 / 4 - 10 * x**3 / 3 + (25 + (a - 2) * (a - 3)) * x**2 / 2
    return action(value, (box(x, 8),), window=(S.One, S(8)))


def two_wells():
    """(x^2 - 1)^2/4 + y^2 (1 + x^2)/2 - a x y: two minima and a saddle at 0 for small a."""
    mirror = Symmetry("half turn", {x: -x, y: -y})
    return action((x**2 - 1) ** 2 / 4 + y**2 * (1 + x**2) / 2 - a * x * y, (box(x, 8), box(y, 8)), symmetries=(mirror,))


def coupled_pitchfork():
    """(1 - a) x^2/2 - x^2 y + y^2 + k x^4: y relaxes to x^2/2 and takes 1/4 from the quartic term."""
    k = Symbol("k", positive=True)
    value = (2 - a) * x**2 / 2 - x**2 * y + y**2 + k * x**4 + x**6
    return action(
        value, (box(x, 4), box(y, 9)), symmetries=(MIRROR,), parameters=(Parameter(k, "quartic coefficient"),)
    )


def crossover():
    """x^2/2 - a x: the minimum x = a is unique, and the observable x^2 passes 4 at a = 2."""
    return action(
        x**2 / 2 - a * x, (box(x, 20),), observables=(Observable("square", x**2, "x squared", crossover=S(4)),)
    )


def extreme():
    """scale (x^4/4 - x^3 + 2 x^2/2 ... ) at any scale: x (x - 1)(x - 2) scale^2 - a, spinodals at scale^2 2 sqrt(3)/9."""
    value = scale**2 * (x**4 / 4 - x**3 + x**2) - a * x
    return action(
        value,
        (box(x, 8),),
        window=(scale**2 / 100, scale**2 * 10),
        parameters=(Parameter(scale, "scale"),),
    )


def rootless():
    """F' = exp(-t): no stationary point at all."""
    return action(-exp(-t) * a, (OrderParameter(t, "t", S.Zero, S(50)),))


def double_root():
    """F' = (t - 1)^2: one degenerate point."""
    return action(a * (t - 1) ** 3 / 3, (OrderParameter(t, "t", S.Zero, S(4)),))


def two_roots():
    """F' = t^2 - 4 t."""
    return action(a * (t**3 / 3 - 2 * t**2), (OrderParameter(t, "t", S(-2), S(6)),))


def cusp_along_a_diagonal():
    """The cusp in (x + y)/2 beside a stiff direction x - y + (x + y)^2/8: three stationary points on one parabola.

    With s = (x + y)/2 and d = x - y + s^2/2 the action is s^4/4 - (size - 2) s^2/2 - (a - 3) s + 2 d^2: the end point is
    s = 0, d = 0, at a = 3, size = 2.
    """
    s = (x + y) / 2
    value = s**4 / 4 - (size - 2) * s**2 / 2 - (a - 3) * s + 2 * (x - y + s**2 / 2) ** 2
    return action(value, (box(x, 12), box(y, 12)), parameters=(Parameter(size, "size"),), size=size)


def metastable_fold():
    """y is metastable at y^2 = (a + sqrt(a^2 - 24))/12 from a = sqrt(24) on, and would be lowest from sqrt(32) on only."""
    value = size * (x**2 / 2 - a * x + y**2 / 2 - a * y**4 / 4 + y**6)
    flip = Symmetry("flip", {y: -y})
    return action(
        value,
        (box(x, 8), box(y, 2)),
        window=(S(4), Rational(11, 2)),
        parameters=(Parameter(size, "size"),),
        size=size,
        symmetries=(flip,),
    )


def rotor():
    """(1 - a) r^2/2 + r^4/4 in the plane: a ring of minima from a = 1 on."""
    r2 = x**2 + y**2
    return action((1 - a) * r2 / 2 + r2**2 / 4, (box(x, 8), box(y, 8)))


def three_state_potts():
    """(2 - a) r^2/2 - (x^3 - 3 x y^2)/3 + r^4/4: coexistence with zero at a = 16/9, spinodal at 7/4, instability at 2.

    Only one of the three mirrors is declared.
    """
    r2 = x**2 + y**2
    value = (2 - a) * r2 / 2 - (x**3 - 3 * x * y**2) / 3 + r2**2 / 4
    return action(value, (box(x, 8), box(y, 8)), symmetries=(Symmetry("mirror", {y: -y}),))


def reentrant(gap):
    """(a - 1) (a - 1 - gap) x^2/2 + x^4/4: zero is unstable between both controls only."""
    return action((a - 1) * (a - 1 - gap) * x**2 / 2 + x**4 / 4, (box(x, 20),), symmetries=(MIRROR,))


def degenerate_at_rest():
    """a x^4/4 - a x^2/2 + log(1 + a x^2)/2: F'' vanishes in x = 0 for every a; two minima leave it at a = 1."""
    return action(a * x**4 / 4 - a * x**2 / 2 + log(1 + a * x**2) / 2, (box(x, 3),), symmetries=(MIRROR,))


def crossing_at_an_angle():
    """F' = (x - a) (x - a^2): two branches, neither of which rests, cross at a = 1."""
    value = x**3 / 3 - (a + a**2) * x**2 / 2 + a**3 * x
    return action(value, (box(x, 5),), window=(Rational(1, 2), S(2)))


def transcritical():
    """(a - 1) x^2/2 + x^3/3 + x^4/400: two branches exchange their stability in x = 0 at a = 1."""
    order = OrderParameter(x, "an order parameter", S(-200), S(20))
    return action((a - 1) * x**2 / 2 + x**3 / 3 + x**4 / 400, (order,))


def cubic(slope, shift=S(0), stiffness=None):
    """h u^2/2 + s u^3/3 + u^4/4, u = x - shift: exchange of stability at h = 0, fold at s^2/4; a stiff y follows u."""
    u = x - shift
    value, orders = field * u**2 / 2 + slope * u**3 / 3 + u**4 / 4, [box(x, 3)]
    if stiffness is not None:
        value, orders = value + stiffness * (y - u / 3) ** 2 / 2, [*orders, box(y, 3)]
    return action(value, tuple(orders), control=field, window=(S(-1), S(1)), lower=S(-10))


def flat():
    """No order parameter in it at all."""
    return action(a, (box(x, 8),))


def bragg_williams():
    """Mixing entropy of up and down spins: real between the walls m = -1 and 1 only; m = tanh((m + h)/a)."""
    entropy = sum(s * log(s) for s in ((1 + x) / 2, (1 - x) / 2))
    return action(
        -(x**2) / 2 - field * x + a * entropy,
        (box(x, 1),),
        window=(Rational(1, 10), S(2)),
        parameters=(Parameter(field, "the field", lower=S(-10), default=S.Zero),),
    )


def three_phases():
    """x^2 (x^2 - 1)^2 + h (x + x^2/2): at h = 0 three minima are equally deep, below it x = 1 is lowest, above x = -1."""
    value = x**2 * (x**2 - 1) ** 2 + field * (x + x**2 / 2)
    return action(value, (box(x, 2),), control=field, window=(Rational(-1, 20), Rational(1, 20)), lower=S(-10))
