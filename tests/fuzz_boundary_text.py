"""Random and mutated boundaries: `python tests/fuzz_boundary_text.py [seed]`.

A text is a boundary, which prints and parses to the same, or an error that shows its column. Any
other failure is an exception.
"""

import random
import sys
import time

from fuzz_equation_text import LONGEST, PIECES, random_expression
from splatop.equation import domain_from_text
from splatop.errors import SplatopError

MUTATED = [
    "x0: u = 0; x1: dn(u) = 0; y: periodic; x: v = sin(pi*y)",
    "all: u = a/(1 + b), v = -1e-3",
    "x: free; y: dn(u) = exp(-x^2)*a, free(v)",
    "x: periodic; y0: u = 1, v = 0; y1: free(u, v)",
]
WORDS = [*PIECES, ":", ";", "x0", "x1", "y0", "all", "free", "free(", "periodic", "dn(", "u = "]
SIZE = {"lengths": (1.0, 2.0), "fields": ("u", "v")}


def mutated(rng):
    text = list(rng.choice(MUTATED))
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(text) + 1)
        if rng.random() < 0.4 and text:
            del text[min(place, len(text) - 1)]
        else:
            text[place:place] = list(rng.choice(WORDS))
    return "".join(text)


def grammatical(rng):
    value = random_expression(rng, 3)
    return f"x: u = {value}, dn(v) = {rng.choice(['a', '1', 'y'])}; y: periodic"


def check(text):
    try:
        domain = domain_from_text(text, **SIZE)
    except SplatopError as error:
        if "column" not in str(error) or "^" not in str(error):
            raise AssertionError(f"an error without its column for {text!r}: {error}") from error
        return False
    printed = domain.describe(SIZE["fields"])
    if len(printed) <= 10_000 and domain_from_text(printed, **SIZE) != domain:
        raise AssertionError(f"{text!r} prints as another boundary: {printed!r}")
    return True


def main(seed=0):
    rng = random.Random(seed)
    texts = [mutated(rng) for _ in range(3000)]
    texts += ["".join(rng.choice(WORDS) for _ in range(rng.randint(0, 30))) for _ in range(2000)]
    texts += [grammatical(rng) for _ in range(200)]
    texts += ["x: u = " + "(" * 4000, "x:" * 4000, "all: u = " + "-" * 9000 + "1", ";" * 9000]
    parsed, longest = 0, 0.0
    for text in texts:
        start = time.perf_counter()
        parsed += check(text)
        longest = max(longest, time.perf_counter() - start)
    print(f"{len(texts)} texts, {parsed} boundaries, longest {longest:.2f} s")
    if longest > LONGEST:
        raise AssertionError("the parser's work is not bounded")


if __name__ == "__main__":
    main(*(int(seed) for seed in sys.argv[1:2]))
