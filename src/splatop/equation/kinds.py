"""What kind of term a monomial is, which gives the term its name."""

from .expression import (
    Coordinate,
    Expression,
    FieldDerivative,
    Function,
    Monomial,
    Time,
    atoms,
    degree,
    monomial_atoms,
    uses_fields,
)

_LINEAR = {0: "reaction", 1: "advection", 2: "diffusion", 3: "dispersion", 4: "hyperdiffusion"}


_NONLINEAR = {2: "nonlinear_diffusion", 3: "nonlinear_dispersion", 4: "nonlinear_hyperdiffusion"}


def kind(monomial: Monomial, inputs: tuple[str, ...] = ()) -> str:
    """The conventional name of what a product of derivatives stands for."""
    operands = [atom for atom in monomial_atoms(monomial) if isinstance(atom, FieldDerivative)]
    if operands and all(atom.field in inputs for atom in operands):
        return "forcing"
    if not operands:
        varies = any(isinstance(atom, Coordinate | Time) for atom in monomial_atoms(monomial))
        return "forcing" if varies else "constant"
    slopes = [atom for atom in operands if not atom.is_value]
    order = max((atom.order for atom in operands if not atom.inverses), default=-1)
    if not slopes:
        return "reaction"
    if degree(monomial) == 1:
        return "nonlocal" if slopes[0].inverses else _LINEAR.get(order, f"derivative{order}")
    direct = [(a, e) for a, e in monomial if isinstance(a, FieldDerivative) and a.order == 1]
    first = sum(int(e) for a, e in direct if not a.inverses)
    hidden = any(isinstance(atom, Function) and _has_slopes(atom.argument) for atom, _ in monomial)
    if order == 1 and not hidden:
        return "self_advection" if first == 1 else "gradient_nonlinearity"
    return _NONLINEAR.get(order, "nonlinear")


def _has_slopes(expression: Expression) -> bool:
    return uses_fields(expression) and any(
        isinstance(atom, FieldDerivative) and not atom.is_value for atom in atoms(expression)
    )


def joint_kind(kinds: set[str]) -> str | None:
    """One name for several kinds in one term, or None."""
    if len(kinds) == 1:
        return next(iter(kinds)).replace("constant", "forcing")
    if kinds == {"reaction", "constant"}:
        return "reaction"
    if kinds == {"forcing", "constant"}:
        return "forcing"
    if kinds <= {"diffusion", "nonlinear_diffusion", "gradient_nonlinearity"}:
        return "nonlinear_diffusion"
    return None
