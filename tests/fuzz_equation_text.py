"""Random, mutated and malicious equations: `python tests/fuzz_equation_text.py [seed [file]]`.

The tests run this in a process of its own, without the type checker that makes each of the many
small calls of the parser fifty times slower. Prints what it did, and writes it to the JSON file if
one is named; any failure is an exception.
"""

import json
import random
import sys
import time
from pathlib import Path

from splatop.equation import (
    EXAMPLES,
    format_equation,
    format_partial,
    has_unknown,
    latex,
    parse_equation,
    parse_partial_equation,
)
from splatop.errors import SplatopError

MUTATED = [
    *(example.text for example in EXAMPLES.values()),
    "dt(u) = div(D*u*grad(u)) + sin(2*pi*x)*exp(-u^2)",
    "dt(u) = lap(u^3 - u) - g*bilap(u) + dx(sqrt(1 + u^2))*abs(u)",
    "dt(u) = a*tanh(u)^3/(1 + b)^0.5 + d3x(lap(u))*u; dt(v) = dot(grad(u), grad(v))",
    "dt(psi) = i*(D*lap(psi) + g*abs2(psi)*psi)",
    "dt(u) = D*lap(u) + ?(u, dx(u), invlap(v)); dt(v) = ? - a*v",
    "dt(psi) = 1i*lap(psi) + ?(psi)",
    "dt(u) = u + (1 + 2i*a)*lap(u) - (1 + b*i)*conj(u)^2*u; dt(v) = re(u*exp(1i*x))*im(v)",
]
PIECES = [
    *"uvwabDxyzt230._[('é\n\t\x00(),;=+-*/^?",
    *(" + ?", "?(u)", "?("),
    *("i", "1i", "2.5i", "1e-3i", "i*", "conj(", "abs2(", "re(", "im(", "real(", "imag("),
    *("pi", "1e-3", "0.5", "1e400", "99", "**", "__import__", "import", "lambda"),
    *(f"{f}(" for f in ("dt", "dx", "dy", "dz", "d2x", "d4x", "lap", "bilap", "invlap", "grad")),
    *(f"{f}(" for f in ("div", "dot", "vec", "sin", "exp", "sqrt", "abs", "tanh")),
]
BOMBS = [
    "dt(u) = (u + x + a + b + c + d + e + f)^16",
    "dt(u) = (((u + x + a)^16)^16)^16",
    "dt(u) = " + "*".join(["(u + x + a + b)"] * 300),
    "dt(u) = " + "+".join(["(u + x + a + b)^9"] * 300),
    "dt(u) = " + "+".join(f"d4x(sin(u*x)*exp({k}*u))" for k in range(300)),
    "dt(u) = d12x(tanh(exp(sin(u*x))))",
    "dt(u) = bilap(bilap(bilap(sin(u)*tanh(u)*exp(x*u))))",
    "dt(u) = " + "+".join(f"a{k}*u" for k in range(1200)),
    "dt(u) = " + "-" * 9000 + "u",
    "dt(u) = " + "(" * 4000 + "u" + ")" * 4000,
    "dt(u) = " + "2^" * 4000 + "u",
    "dt(u) = " + ";" * 9000,
    "dt(u) = " + "*".join(["(1i + u + x + a)"] * 300),
    "dt(u) = abs2((1i*u + x + a + b + c)^9)",
    "dt(u) = exp(exp(exp(exp(exp(exp(1i*u))))))",
    "dt(a0) = 1i*a0" + "".join(f"; dt(a{k + 1}) = a{k}" for k in range(500)),
]
# The algebra's own bound is about half a second; the factor is for a busy machine.
LONGEST = 15.0


def random_text(rng):
    start = rng.choice(["", "dt(u) = ", "dt(u) = u; dt(v) = "])
    return start + "".join(rng.choice(PIECES) for _ in range(rng.randint(0, 40)))


def mutated_text(rng):
    text = list(rng.choice(MUTATED))
    for _ in range(rng.randint(1, 5)):
        place, chance = rng.randrange(len(text) + 1), rng.random()
        if chance < 0.3 and text:
            del text[min(place, len(text) - 1)]
        elif chance < 0.7:
            text[place:place] = list(rng.choice(PIECES))
        else:
            start = rng.randrange(len(text) + 1)
            text[place:place] = text[start : start + rng.randint(1, 30)]
    return "".join(text)


def random_expression(rng, depth):
    """Always grammatical, and mostly meaningful."""
    kind = rng.randrange(10) if depth else 0
    if kind == 0:
        return rng.choice([*"uuvvabxy23i", "pi", "0.5", "2i"])

    def one():
        return random_expression(rng, depth - 1)

    return {
        1: lambda: f"({one()} {rng.choice('+-')} {one()})",
        2: lambda: f"{one()}*{one()}",
        3: lambda: f"-{one()}",
        4: lambda: f"({one()})^{rng.choice(['0', '2', '3', '(1/2)', '-1', '(-3/2)'])}",
        5: lambda: f"{one()}/(a + {rng.choice(['1', 'x', 'b*y', 'pi'])})",
        6: lambda: f"{rng.choice(['sin', 'cos', 'exp', 'tanh', 'sqrt', 'abs'])}({one()})",
        7: lambda: f"{rng.choice(['dx', 'd2x', 'dy', 'lap', 'bilap', 'invlap'])}(u*x + {one()})",
        8: lambda: f"div(({one()})*grad(v + {one()}))",
        9: lambda: f"{rng.choice(['abs2', 'conj', 're', 'im'])}({one()})",
    }[kind]()


def check(text, dims):
    """Whether the text is an equation; then it prints, and prints the same again."""
    try:
        partial = parse_partial_equation(text, dims=dims)
        if partial.unknown:
            normal = format_partial(partial)
            if parse_partial_equation(normal, dims=dims) != partial:
                raise AssertionError(f"{text!r} prints as another equation: {normal!r}")
        equation = parse_equation(text, dims=dims)
    except SplatopError as error:
        if "column" not in str(error) or "^" not in str(error):
            raise AssertionError(f"an error without its column for {text!r}") from error
        if "without an unknown part" in str(error) and not has_unknown(text):
            raise AssertionError(f"no ? in {text!r}") from error
        return False
    latex(equation)
    normal = format_equation(equation)
    if len(normal) <= 10_000 and parse_equation(normal, dims=dims) != equation:
        raise AssertionError(f"{text!r} prints as another equation: {normal!r}")
    return True


def main(seed=20, file=None):
    rng = random.Random(seed)
    texts = [random_text(rng) if i % 2 else mutated_text(rng) for i in range(10_000)]
    whole = [
        f"dt(u) = {random_expression(rng, 4)} + u; dt(v) = {random_expression(rng, 3)}"
        for _ in range(400)
    ]
    longest, counts = 0.0, {}
    for name, group in (("fuzzed", texts), ("grammatical", whole), ("malicious", BOMBS)):
        parsed = 0
        for text in group:
            start = time.perf_counter()
            parsed += check(text, rng.choice([1, 2, 3]) if group is texts else 2)
            longest = max(longest, time.perf_counter() - start)
        print(f"{name}: {len(group)} texts, {parsed} equations")
        counts[name] = {
            "texts": len(group),
            "equations": parsed,
            "errors with their column": len(group) - parsed,
            "other errors": 0,  # the first one ends the run
        }
    print(f"longest: {longest:.2f} s")
    if longest > LONGEST:
        raise AssertionError("the parser's work is not bounded")
    if file is not None:
        held = {"seed": seed, **counts, "longest_seconds": round(longest, 2)}
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(json.dumps(held, indent=1) + "\n")


if __name__ == "__main__":
    main(*(int(seed) for seed in sys.argv[1:2]), *sys.argv[2:])
