"""The LaTeX that equations print to, as MathML, which browsers draw without any script.

latex2mathml, which sets the documentation's formulas, was tried here. It drops `mathrm`, so that
the y of a field `u_y` looks like that of a derivative, slants Δ, sets a sign as far off as a
difference, and raises an error where a formula is cut short; its MathML is a tenth longer.
"""

import re

from .markup import Html, join, tag

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[0-9]+(?:\.[0-9]+)?|\s+|.", re.DOTALL)

_IDENTIFIERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ϵ", "zeta": "ζ", "eta": "η",
    "theta": "θ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ",
    "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "upsilon": "υ", "phi": "ϕ", "chi": "χ",
    "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ",
    "Pi": "Π", "Sigma": "Σ", "Upsilon": "Υ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω",
}  # fmt: skip
_OPERATORS = {"partial": "∂", "nabla": "∇", "times": "×", "cdot": "⋅", "pm": "±"}
_SPACES = {",": "0.17em", ";": "0.28em", " ": "0.25em", "quad": "1em", "!": "-0.1em"}


def mathml(latex: str) -> Html:
    """A formula as MathML. What the small grammar does not know stands as it was written."""
    body = _Parser(latex).formula()
    return tag("math", tag("mrow", *body), display="block")


class _Parser:
    def __init__(self, latex: str):
        self.tokens = [token for token in _TOKEN.findall(latex) if not token.isspace()]
        self.position = 0

    def formula(self) -> list[Html]:
        parts = self.row(())
        while self.peek() is not None:  # a closing brace or \right without its opening
            parts += [tag("mo", self.take()), *self.row(())]
        return parts

    def peek(self) -> str | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def take(self) -> str:
        self.position += 1
        return self.tokens[self.position - 1]

    def row(self, until: tuple[str, ...]) -> list[Html]:
        parts: list[Html] = []
        while (token := self.peek()) is not None and token not in (*until, "}", "\\right"):
            # A sign stands closer to what follows than a difference does.
            if token == "-" and (not parts or parts[-1] == tag("mo", "=")):
                self.take()
                parts.append(tag("mo", "−", form="prefix", lspace="0", rspace="0.05em"))
            else:
                parts.append(self.scripted())
        return parts

    def scripted(self) -> Html:
        """An atom with what is set below and above it."""
        base = self.atom()
        below = above = None
        while (token := self.peek()) in ("_", "^"):
            self.take()
            if token == "_":
                below = self.argument()
            else:
                above = self.argument()
        if below is not None and above is not None:
            return tag("msubsup", base, below, above)
        if below is not None:
            return tag("msub", base, below)
        return base if above is None else tag("msup", base, above)

    def argument(self) -> Html:
        """A braced group, or a single atom."""
        if self.peek() == "{":
            self.take()
            parts = self.row(())
            if self.peek() == "}":
                self.take()
            return parts[0] if len(parts) == 1 else tag("mrow", *parts)
        return tag("mrow") if self.peek() is None else self.atom()

    def words(self) -> str:
        """A braced group as plain text."""
        if self.peek() != "{":
            return self.take() if self.peek() is not None else ""
        self.take()
        found = []
        while (token := self.peek()) is not None and token != "}":
            found.append(self.take())
        if self.peek() == "}":
            self.take()
        return "".join(found)

    def atom(self) -> Html:
        token = self.take()
        if token.startswith("\\") and len(token) > 1:
            return self.command(token[1:])
        if token == "{":
            self.position -= 1
            return self.argument()
        if token[0].isdigit():
            return tag("mn", token)
        if token.isalpha():
            return tag("mi", token)
        return tag("mo", "−" if token == "-" else token)

    def command(self, name: str) -> Html:
        if name in _SPACES:
            return tag("mspace", width=_SPACES[name])
        if name in _IDENTIFIERS:
            # An upright Δ is the Laplacian, as the rest of the page writes it.
            return tag("mi", _IDENTIFIERS[name], mathvariant="normal" if name == "Delta" else None)
        if name in _OPERATORS:
            return tag(
                "mo", _OPERATORS[name], lspace="0", rspace="0" if name == "partial" else None
            )
        if name == "frac":
            return tag("mfrac", self.argument(), self.argument())
        if name == "sqrt":
            return tag("msqrt", self.argument())
        if name in ("mathrm", "text"):
            return tag("mi", self.words(), mathvariant="normal")
        if name == "mathcal":
            return tag("mi", _script(self.words()))
        if name == "left":
            return self.fenced()
        return tag("mi", name, mathvariant="normal")

    def fenced(self) -> Html:
        opening = self.take() if self.peek() is not None else ""
        body = self.row(())
        closing = ""
        if self.peek() == "\\right":
            self.take()
            closing = self.take() if self.peek() is not None else ""
        inside = join(body)
        return tag("mrow", tag("mo", opening), inside, tag("mo", closing))


def _script(word: str) -> str:
    return {"F": "ℱ", "L": "ℒ", "N": "𝒩"}.get(word, word)
