"""Minimax polynomials of csrc/device/stitch: prints the coefficients that the headers hold.

    fit_polynomials.py [NAME...]

Each row of FITS is a function, the weight of its error, the powers whose coefficients are free and
those that are fixed, and an interval.  The fit is a Remez exchange on a grid in 200-bit arithmetic;
coefficients are then rounded to f32 (f64) one by one, lowest power first, and the rest refitted, so
that rounding costs little.  Needs mpmath and numpy.
"""

import sys

import numpy
from mpmath import mp, mpf

mp.prec = 200
GRID_POINTS = 600
SMALL = mpf("1e-6")  # stands for zero where a quotient needs its limit
THIRD = mpf(1) / 3
HALF_LN2 = mp.log(2) / 2 * mpf("1.0001")
QUARTER_PI = mp.pi / 4 * mpf("1.001")
LOG2E, LOG10E = 1 / mp.log(2), 1 / mp.log(10)


def round_f32(x):
    return mpf(float(numpy.float32(float(x))))


def relative(function):
    return lambda x: 1 / function(x) if x else mpf(1)


def log_rest(base_e):
    """log(1 + x) * base_e less its linear term in two f32 parts, over x^2."""
    high = round_f32(base_e)
    linear = high + round_f32(base_e - high)
    return lambda x: (mp.log1p(x) * base_e - linear * x) / x**2 if x else -base_e / 2


def odd_rest(function):
    """(f(x) / x - 1) / x^2 in s = x^2, for odd f with slope 1 at zero."""
    return lambda s: (function(mp.sqrt(s)) / mp.sqrt(s) - 1) / s


def odd_weight(function):
    return lambda s: s * mp.sqrt(s) / function(mp.sqrt(s))


def erf_rate(t):
    return -mp.log(mp.erfc(t)) / t if t > mpf("1e-20") else 2 / mp.sqrt(mp.pi)


def erf_rate_weight(t):
    u = erf_rate(t) * t
    return (u / mp.expm1(u) if u > mpf("1e-20") else 1) / erf_rate(t)


def erfc_rate2(t):
    return erf_rate(t) * LOG2E


def erfc_rate2_weight(t):
    """Of what reaches erfc(t), whose sum with 2^-6 is right: 1 + erf loses as much below zero."""
    return t * mp.erfc(t) / (mp.erfc(t) + mpf(2) ** -6)


def erfc_scaled(t):
    a = 4 * (1 + t) / (1 - t)
    return mp.erfc(a) * mp.exp(a * a) * (1 + 2 * a)


def log_weight(base_e):
    return lambda x: x**2 / (mp.log1p(x) * base_e) if x else mpf("1e-9")


def log2_over_x(x):
    return mp.log1p(x) / x * LOG2E if x else LOG2E


# name: function, weight, free powers, {fixed power: coefficient}, interval, precision
FITS = {
    "exp": (mp.exp, relative(mp.exp), range(2, 7), {0: 1, 1: 1}, (-HALF_LN2, HALF_LN2), "f32"),
    "expm1": (mp.expm1, relative(mp.expm1), range(2, 7), {1: 1}, (-HALF_LN2, HALF_LN2), "f32"),
    "exp2": (
        lambda x: mp.power(2, x),
        lambda x: mp.power(2, -x),
        range(1, 7),
        {0: 1},
        (mpf("-0.5001"), mpf("0.5001")),
        "f32",
    ),
    "log1p": (mp.log1p, relative(mp.log1p), range(2, 11), {1: 1}, (-THIRD, THIRD), "f32"),
    "log2": (log_rest(LOG2E), log_weight(LOG2E), range(9), {}, (-THIRD, THIRD), "f32"),
    "log10": (log_rest(LOG10E), log_weight(LOG10E), range(9), {}, (-THIRD, THIRD), "f32"),
    "sin": (mp.sin, relative(mp.sin), (3, 5, 7), {1: 1}, (mpf("1e-9"), QUARTER_PI), "f32"),
    "cos": (mp.cos, relative(mp.cos), (4, 6, 8), {0: 1, 2: -0.5}, (mpf(0), QUARTER_PI), "f32"),
    "sinh": (odd_rest(mp.sinh), odd_weight(mp.sinh), range(3), {}, (SMALL, mpf(1)), "f32"),
    "tanh": (odd_rest(mp.tanh), odd_weight(mp.tanh), range(4), {}, (SMALL, mpf("0.36")), "f32"),
    "asin": (odd_rest(mp.asin), odd_weight(mp.asin), range(5), {}, (SMALL, mpf("0.25")), "f32"),
    "atan": (odd_rest(mp.atan), odd_weight(mp.atan), range(9), {}, (SMALL, mpf(1)), "f32"),
    "erf": (lambda t: erf_rate(t) - 1, erf_rate_weight, range(9), {}, (mpf(0), mpf("3.95")), "f32"),
    "erfc_short": (erfc_rate2, erfc_rate2_weight, range(6), {}, (mpf(0), mpf(5)), "f32"),
    "erfc": (
        erfc_scaled,
        relative(erfc_scaled),
        range(11),
        {},
        (mpf(-1), mpf("6.06") / mpf("14.06")),
        "f32",
    ),
    "pow_log2": (log2_over_x, relative(log2_over_x), range(15), {}, (-THIRD, THIRD), "f64"),
    "pow_exp2": (
        lambda x: mp.power(2, x),
        lambda x: mp.power(2, -x),
        range(7),
        {},
        (mpf("-0.5001"), mpf("0.5001")),
        "f64",
    ),
}


def find_extremes(errors):
    """Indices of the largest error in each run of one sign."""
    extremes = []
    for i, error in enumerate(errors):
        if extremes and (errors[extremes[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[extremes[-1]]):
                extremes[-1] = i
        else:
            extremes.append(i)
    return extremes


def thin_out(extremes, errors, count):
    """Drops extremes until count are left and signs still alternate."""
    while len(extremes) - count >= 2:
        pairs = range(len(extremes) - 1)
        weakest = min(pairs, key=lambda i: max(abs(errors[e]) for e in extremes[i : i + 2]))
        del extremes[weakest : weakest + 2]
    if len(extremes) > count:
        extremes.pop(0 if abs(errors[extremes[0]]) < abs(errors[extremes[-1]]) else -1)
    return extremes


def exchange_one(nodes, errors):
    """Brings the largest error among the nodes, keeping alternation."""
    worst = max(range(len(errors)), key=lambda i: abs(errors[i]))
    before = [i for i, node in enumerate(nodes) if node <= worst]
    if not before:
        same = (errors[nodes[0]] > 0) == (errors[worst] > 0)
        return [worst, *(nodes[1:] if same else nodes[:-1])]
    last = before[-1]
    if (errors[nodes[last]] > 0) == (errors[worst] > 0):
        return [*nodes[:last], worst, *nodes[last + 1 :]]
    if last + 1 == len(nodes):
        return [*nodes[1:], worst]
    return [*nodes[: last + 1], worst, *nodes[last + 2 :]]


def solve_minimax(targets, weights, basis):
    """Coefficients of the basis (rows per grid point) with the least weighted maximum error."""
    count = len(basis[0]) + 1
    nodes = [round((len(targets) - 1) * (i + 0.5) / count) for i in range(count)]
    best = None
    for _ in range(60):
        matrix = mp.matrix(count, count)
        right = mp.matrix(count, 1)
        for row, i in enumerate(nodes):
            for column, value in enumerate(basis[i]):
                matrix[row, column] = value * weights[i]
            matrix[row, count - 1] = (-1) ** row
            right[row] = targets[i] * weights[i]
        solution = mp.lu_solve(matrix, right)
        coefficients = [solution[i] for i in range(count - 1)]
        errors = [w * (t - mp.fdot(coefficients, b)) for t, w, b in zip(targets, weights, basis)]
        largest = max(map(abs, errors))
        if best is None or largest < best[1]:
            best = (coefficients, largest)
        if largest <= abs(solution[count - 1]) * mpf("1.0005"):
            break
        extremes = find_extremes(errors)
        enough = len(extremes) >= count
        nodes = thin_out(extremes, errors, count) if enough else exchange_one(nodes, errors)
    return best


def fit(function, weight, powers, fixed, interval, precision):
    """({power: rounded coefficient}, largest weighted error)."""
    low, high = interval
    steps = range(GRID_POINTS)
    grid = [
        (low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / (GRID_POINTS - 1)) for i in steps
    ]
    weights = [abs(weight(x)) for x in grid]
    coefficients = {power: mpf(value) for power, value in fixed.items()}
    rest = [function(x) - sum(c * x**p for p, c in coefficients.items()) for x in grid]
    left = list(powers)
    while left:
        solution, _ = solve_minimax(rest, weights, [[x**p for p in left] for x in grid])
        power = left.pop(0)
        value = solution[0]
        coefficients[power] = round_f32(value) if precision == "f32" else mpf(float(value))
        rest = [r - coefficients[power] * x**power for r, x in zip(rest, grid)]
    return coefficients, max(w * abs(r) for w, r in zip(weights, rest))


def main(names):
    for name in names or FITS:
        coefficients, error = fit(*FITS[name])
        print(f"{name}: relative error 2^{float(mp.log(error, 2)):.1f}")
        for power in sorted(coefficients):
            print(f"  x^{power}: {float(coefficients[power]).hex()}")


if __name__ == "__main__":
    main(sys.argv[1:])
