r"""What standalone source brings along: functions that its language lacks, the tables of names, and the program around it.

.. math:: \operatorname{erfcx}(u) = \frac{1}{\sqrt\pi} \cfrac{1}{u + \cfrac{1/2}{u + \cfrac{2/2}{u + \cdots}}}, \qquad
    w_{k+1} = w_k - \frac{r}{w + 1 - \frac{(w + 2)\,r}{2 w + 2}}, \quad r = w - x e^{-w}

The scaled complement of the error function by its continued fraction (DLMF 7.9), the Lambert function by Halley's method.
JavaScript lacks the error and the gamma function too: they are there by their series (DLMF 7.6.2, 5.11.1).
"""

from __future__ import annotations

__all__ = [
    "C_NAMES",
    "C_PROGRAM",
    "C_WORDS",
    "JAVASCRIPT",
    "JAVASCRIPT_NAMES",
    "JAVASCRIPT_PROGRAM",
    "JAVASCRIPT_WORDS",
    "PYTHON",
    "PYTHON_NAMES",
    "PYTHON_PROGRAM",
    "C",
]

_SAME = (
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "erf", "exp", "expm1", "log", "log1p"),
    *("sin", "sinh", "tan", "tanh", "floor"),
)  # called alike in SymPy, Python, C and, but for the error function, JavaScript
_OURS = {
    "LambertW": "lambertw",
    "Erfcx": "erfcx",
    "Logaddexp": "logaddexp",
    "Xlogy": "xlogy",
    "Xlog1py": "xlog1py",
    "sign": "sign",
}
PYTHON_NAMES = {
    **{name: f"math.{name}" for name in (*_SAME, "gamma")},
    **_OURS,
    "Abs": "abs",
    "Erfc": "math.erfc",
    "Exp": "math.exp",
    "ceiling": "math.ceil",
    "loggamma": "math.lgamma",
}
C_NAMES = {
    **{name: name for name in _SAME},
    **_OURS,
    "Abs": "fabs",
    "Erfc": "erfc",
    "Exp": "exp",
    "ceiling": "ceil",
    "gamma": "tgamma",
    "loggamma": "lgamma",
}
JAVASCRIPT_NAMES = {
    **{name: f"Math.{name}" for name in _SAME},
    **_OURS,
    "Abs": "Math.abs",
    "Erfc": "erfc",
    "Exp": "Math.exp",
    "ceiling": "Math.ceil",
    "erf": "erf",
    "gamma": "gamma",
    "loggamma": "loggamma",
    "sign": "Math.sign",
}
JAVASCRIPT_WORDS = """
    arguments async await catch class console const debugger default delete do eval export extends function implements
    import instanceof interface let module new null of package private process protected public require static super
    switch this throw try typeof undefined var void with yield Infinity Math NaN Number
"""
C_WORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while main printf
    fabs tgamma fmax fmin j0 j1 jn y0 y1 yn NAN INFINITY
"""

PYTHON = {
    "finite": '''
def finite(*values):
    """The values; an error where one is no finite number."""
    if not all(map(math.isfinite, values)):
        raise OverflowError("no finite value: an argument is too large for double precision, or not in the domain")
    return values if len(values) != 1 else values[0]
''',
    "lambertw": '''
def lambertw(x, branch=0):
    """The real branch 0 or -1 of the inverse of w exp(w)."""
    if not x >= -math.exp(-1) or (branch and x >= 0):
        return math.nan
    if x < -0.2:
        root = math.sqrt(max(0, 2 * (math.e * x + 1)))
        w = -1 + (-root if branch else root) - root * root / 3
    elif branch or x > math.e:
        w = math.log(abs(x))
        w -= math.log(abs(w))
    else:
        w = x / (1 + x) if x < 1 else math.log1p(x)
    for _ in range(20):
        half = math.exp(-w / 2)
        residual = w - x * half * half
        if residual == 0 or w == -1:
            break
        w -= residual / (w + 1 - (w + 2) * residual / (2 * w + 2))
    return w
''',
    "erfcx": '''
def erfcx(u):
    """exp(u^2) erfc(u)."""
    if u < 5:
        return math.exp(u * u) * math.erfc(u)
    tail = u
    for k in range(60, 0, -1):
        tail = u + k / 2 / tail
    return 1 / (tail * math.sqrt(math.pi))
''',
    "logaddexp": '''
def logaddexp(a, b):
    """log(exp(a) + exp(b))."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))
''',
    "xlogy": '''
def xlogy(x, y):
    """x log(y), 0 where x is."""
    return x * math.log(y) if x else 0.0
''',
    "xlog1py": '''
def xlog1py(x, y):
    """x log(1 + y), 0 where x is."""
    return x * math.log1p(y) if x else 0.0
''',
    "sign": """
def sign(x):
    return (x > 0) - (x < 0)
""",
}

C = {
    "lambertw": """
/* The real branch 0 or -1 of the inverse of w exp(w). */
static double lambertw_branch(double x, double branch) {
    double w;
    if (!(x >= -exp(-1.0)) || (branch != 0 && x >= 0)) return NAN;
    if (x < -0.2) {
        const double root = sqrt(fmax(0.0, 2*(exp(1.0)*x + 1)));
        w = -1 + (branch != 0 ? -root : root) - root*root/3;
    } else if (branch != 0 || x > exp(1.0)) {
        w = log(fabs(x));
        w -= log(fabs(w));
    } else {
        w = x < 1 ? x/(1 + x) : log1p(x);
    }
    for (int step = 0; step < 20; step++) {
        const double half = exp(-w/2), residual = w - x*half*half;
        if (residual == 0 || w == -1) break;
        w -= residual/(w + 1 - (w + 2)*residual/(2*w + 2));
    }
    return w;
}
#define lambertw_chosen(x, branch, ...) lambertw_branch(x, branch)
#define lambertw(...) lambertw_chosen(__VA_ARGS__, 0.0, 0.0)
""",
    "erfcx": """
/* exp(u^2) erfc(u) */
static double erfcx(double u) {
    double tail = u;
    if (u < 5) return exp(u*u)*erfc(u);
    for (int k = 60; k > 0; k--) tail = u + k/2.0/tail;
    return 1/(tail*sqrt(acos(-1.0)));
}
""",
    "logaddexp": """
/* log(exp(a) + exp(b)) */
static double logaddexp(double a, double b) {
    return fmax(a, b) + log1p(exp(-fabs(a - b)));
}
""",
    "xlogy": """
/* x log(y), 0 where x is */
static double xlogy(double x, double y) {
    return x == 0 ? 0.0 : x*log(y);
}
""",
    "xlog1py": """
/* x log(1 + y), 0 where x is */
static double xlog1py(double x, double y) {
    return x == 0 ? 0.0 : x*log1p(y);
}
""",
    "sign": """
static double sign(double x) {
    return (x > 0) - (x < 0);
}
""",
}

JAVASCRIPT = {  # by all the names that are in a text
    "lambertw": """
/* The real branch 0 or -1 of the inverse of w exp(w). */
function lambertw(x, branch = 0) {
    let w;
    if (!(x >= -Math.exp(-1)) || (branch && x >= 0)) return NaN;
    if (x < -0.2) {
        const root = Math.sqrt(Math.max(0, 2*(Math.E*x + 1)));
        w = -1 + (branch ? -root : root) - root*root/3;
    } else if (branch || x > Math.E) {
        w = Math.log(Math.abs(x));
        w -= Math.log(Math.abs(w));
    } else {
        w = x < 1 ? x/(1 + x) : Math.log1p(x);
    }
    for (let step = 0; step < 20; step++) {
        const half = Math.exp(-w/2), residual = w - x*half*half;
        if (residual === 0 || w === -1) break;
        w -= residual/(w + 1 - (w + 2)*residual/(2*w + 2));
    }
    return w;
}
""",
    "erf|erfc|erfcx": """
function erf(x) {
    if (Math.abs(x) > 2) return x > 0 ? 1 - erfc(x) : erfc(-x) - 1;
    let term = 2*x*Math.exp(-x*x)/Math.sqrt(Math.PI), sum = term;
    for (let k = 1; k < 60; k++) sum += term *= 2*x*x/(2*k + 1);
    return sum;
}
function erfc(x) {
    return x > 2 ? Math.exp(-x*x)*erfcx(x) : 1 - erf(x);
}
/* exp(u^2) erfc(u) */
function erfcx(u) {
    if (u <= 2) return Math.exp(u*u)*erfc(u);
    let tail = u;
    for (let k = 200; k > 0; k--) tail = u + k/2/tail;
    return 1/(tail*Math.sqrt(Math.PI));
}
""",
    "gamma|loggamma": """
/* [a, b]: the gamma function of x > 0 is exp(a)/b. */
function shifted_gamma(x) {
    let product = 1;
    for (; x < 12; x++) product *= x;
    const y = 1/(x*x), bernoulli = [1/12, -1/360, 1/1260, -1/1680, 1/1188, -691/360360, 1/156];
    const tail = bernoulli.reduceRight((sum, c) => sum*y + c, 0)/x;
    return [(x - 0.5)*Math.log(x) - x + Math.log(2*Math.PI)/2 + tail, product];
}
function gamma(x) {
    if (x < 0.5) return Math.PI/(Math.sin(Math.PI*x)*gamma(1 - x));
    const [a, b] = shifted_gamma(x);
    return Math.exp(a)/b;
}
/* log |gamma(x)| */
function loggamma(x) {
    if (x < 0.5) return Math.log(Math.PI/Math.abs(Math.sin(Math.PI*x))) - loggamma(1 - x);
    const [a, b] = shifted_gamma(x);
    return a - Math.log(b);
}
""",
    "logaddexp": """
/* log(exp(a) + exp(b)) */
function logaddexp(a, b) {
    return Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)));
}
""",
    "xlogy": """
/* x log(y), 0 where x is */
function xlogy(x, y) {
    return x === 0 ? 0 : x*Math.log(y);
}
""",
    "xlog1py": """
/* x log(1 + y), 0 where x is */
function xlog1py(x, y) {
    return x === 0 ? 0 : x*Math.log1p(y);
}
""",
}

PYTHON_PROGRAM = """{header}

import math
import sys
{scipy}{helpers}

{body}


if __name__ == "__main__":
    value = {name}({arguments})
    computed = value if isinstance(value, tuple) else (value,)
    expected = ({expected},)
    good = True
    for ours, exact in zip(computed, expected):
        print(f"{{ours:.15g}} (expected {{exact:.15g}})")
        good = good and abs(ours - exact) <= {tolerance} * abs(exact)
    sys.exit(0 if good else 1)
"""

JAVASCRIPT_PROGRAM = """{header}

"use strict";
{helpers}
{body}

// Run by Node.js it compares itself with the test value; required by other modules it is the function.
if (typeof module === "object") {{
    module.exports = {name};
    if (require.main === module) {{
        const computed = [{name}({arguments})].flat(), expected = [{expected}];
        let good = true;
        computed.forEach((ours, k) => {{
            console.log(`${{ours.toPrecision(15)}} (expected ${{expected[k].toPrecision(15)}})`);
            good = good && Math.abs(ours - expected[k]) <= {tolerance}*Math.abs(expected[k]);
        }});
        process.exitCode = good ? 0 : 1;
    }}
}}
"""

C_PROGRAM = """{header}

#include <math.h>
#include <stdio.h>
{helpers}
{body}

/* Define LIBRARY to use the function elsewhere. */
#ifndef LIBRARY
int main(void) {{
    const double expected[] = {{{expected}}};
    double value[{outputs}];
    int good = 1;
    {call};
    for (int k = 0; k < {outputs}; k++) {{
        printf("%.15g (expected %.15g)\\n", value[k], expected[k]);
        good = good && fabs(value[k] - expected[k]) <= {tolerance}*fabs(expected[k]);
    }}
    return good ? 0 : 1;
}}
#endif
"""
