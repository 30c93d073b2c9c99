"""Can an equation bear the conditions that are set at the edges, and does it have all it needs?"""

from collections.abc import Iterable, Iterator

import numpy as np

from ..domain import AXES, Domain, potential
from ..equation import Equation
from ..equation.edge_values import value_names
from ..equation.expansion import expand, split_linear
from ..equation.expression import FieldDerivative, atoms
from ..errors import SplatopError
from ..stepper import Coefficients


def check_stated(equation: Equation, domain: Domain, values: Iterable[str] = ()) -> None:
    """Refuse values with unknown names in them, and conditions that an equation cannot bear.

    Names are those of the equation's coefficients, and of other `values` that are given.
    """
    names = {*equation.coefficient_names, *values}
    for (side, name), condition in domain.conditions.items():
        for unknown in value_names(condition):
            if unknown not in names:
                raise SplatopError(
                    f"expected numbers, coordinates along the side or coefficients of the equation "
                    f"in '{side}: {condition.text(name)}', got {unknown}: write its number"
                )
    check_potentials(equation, domain)
    _check_stated(equation, domain)
    _check_borne(equation, domain)


def check_told(domain: Domain, unknown: Iterable[str]) -> None:
    """Refuse values at the edges that are to be identified: what frames are in the space of the
    domain depends on them."""
    for (side, name), condition in domain.conditions.items():
        for one in value_names(condition):
            if one in unknown:
                raise SplatopError(
                    f"expected the value of {one}, which '{side}: {condition.text(name)}' sets, "
                    "got none: give it (--known, --coefficients, coefficients=), or write its "
                    "number; what is set at an edge is not identified"
                )


def check_conditions(equation: Equation, domain: Domain, values: Iterable[str] = ()) -> None:
    """Refuse what `check_stated` does, and a field that diffuses through an end without a condition
    there."""
    if domain.all_periodic:
        return
    check_stated(equation, domain, values)
    for name, free, order, where in _ends(equation, domain):
        if order >= 2 and free:
            raise SplatopError(
                f"expected a condition for {name} at {free[0]}, because its equation has second "
                f"derivatives{where}, got 'free': write '{free[0]}: dn({name}) = 0' where it flows "
                "out or nothing passes, or the value that it has there; where neither is so, as in "
                "a window cut out of something larger, only identify and discover are possible: "
                "what enters from outside cannot be predicted"
            )


def check_flow(equation: Equation, domain: Domain, coefficients: Coefficients) -> None:
    """Refuse a field that is only carried, at a speed that is known, if nothing is said where it
    flows in, or something where it flows out."""
    if domain.all_periodic or domain.shape is not None:
        return
    parts, rest = split_linear(equation, domain.dims)
    others = Equation(rest, equation.fields) if rest else None
    for name, free, order, where in _ends(equation, domain):
        axis = AXES.index(where[-1])
        turned = 0 if others is None else own_order(others, name, axis, domain.dims)
        own = equation.fields.index(name)
        here = [part for part in parts if part.channel == part.source == own]
        missing = {c for part in here for c in part.names} - set(coefficients)
        if order != 1 or turned != 0 or missing:
            continue
        speed = -sum(
            float(np.mean(part.rate(coefficients))) * weight
            for part in here
            for index, weight in part.operator.terms
            if index[axis]
        )
        ends = [f"{AXES[axis]}{end}" for end in ((0, 1) if speed > 0 else (1, 0))]
        if speed and ends[0] in free:
            raise SplatopError(
                f"expected a condition for {name} at {ends[0]}, where it flows in (at a speed of "
                f"{speed:.3g}{where}), got 'free': write '{ends[0]}: {name} = ' and its value there"
            )
        if speed and ends[1] not in free:
            raise SplatopError(
                f"expected no condition for {name} at {ends[1]}, where it flows out (at a speed of "
                f"{speed:.3g}{where}), got one: write '{ends[1]}: free({name})'"
            )


def check_solvable(equation: Equation, domain: Domain, coefficients: Coefficients) -> None:
    """Refuse what the equation alone, without data, does not have one solution of."""
    check_conditions(equation, domain, coefficients)
    check_flow(equation, domain, coefficients)
    for name, _, order, where in _ends(equation, domain):
        if order > 2:
            raise SplatopError(
                f"expected derivatives of {name} up to the second between two ends, got order "
                f"{order}{where}, which one condition at each end does not settle: make it "
                "periodic there"
            )


def _check_borne(equation: Equation, domain: Domain) -> None:
    """Refuse conditions at every end for a field that is only carried."""
    for name, free, order, where in _ends(equation, domain):
        if order != 1 or free:
            continue
        if domain.shape is not None:
            raise SplatopError(
                f"expected conditions for {name} where it flows in alone, because its equation has "
                f"first derivatives and no higher, got one at every edge: write "
                f"'{domain.sides[0]}: free' where it flows out or along"
            )
        axis = where[-1]
        raise SplatopError(
            f"expected a condition for {name} at one end of {axis} alone, where it flows in, "
            f"because its equation has first derivatives{where} and no higher, got one at each: "
            f"write '{axis}0: free' or '{axis}1: free' where it flows out"
        )


def _ends(equation: Equation, domain: Domain) -> Iterator[tuple[str, list[str], int, str]]:
    """For each field and each axis with two ends, or all edges of a shape: the sides that are free,
    the highest derivative of the field there in its own equation, and along what in words. Without
    those where a term does not say."""
    for name in equation.fields:
        orders = [own_order(equation, name, axis, domain.dims) for axis in range(domain.dims)]
        free = [side for side in domain.sides if domain.at(side, name).kind == "free"]
        if domain.shape is not None:
            if None not in orders:
                yield name, free, max(one for one in orders if one is not None), ""
            continue
        for axis, (order, along) in enumerate(zip(orders, domain.axes, strict=True)):
            if order is not None and not along.periodic:
                own = [side for side in free if side[:-1] == AXES[axis]]
                yield name, own, order, f" along {AXES[axis]}"


def check_potentials(equation: Equation, domain: Domain) -> None:
    """Refuse an inverse Laplacian without a condition at each end."""
    for name in _inverted(equation, domain.dims):
        missing = [s for s in domain.sides if domain.at(s, potential(name)).kind == "free"]
        if missing:
            one = missing[0]
            raise SplatopError(
                f"expected a condition for {potential(name)} at each edge, because the equation "
                f"has it, got none at {one}: write '{one}: {potential(name)} = 0' (a stream "
                f"function at a wall that nothing passes) or '{one}: dn({potential(name)}) = 0'"
            )


def _check_stated(equation: Equation, domain: Domain) -> None:
    """Refuse conditions of an inverse Laplacian that no term has."""
    known = (*equation.fields, *map(potential, _inverted(equation, domain.dims)))
    for (side, name), condition in domain.conditions.items():
        if name not in known and name.endswith(")"):
            raise SplatopError(
                f"expected conditions for {', '.join(known)}, which the equation has, got "
                f"'{side}: {condition.text(name)}': leave it out"
            )


def _inverted(equation: Equation, dims: int) -> tuple[str, ...]:
    """The fields whose inverse Laplacian an equation has."""
    if not any(d.inverse_laplacians for d in equation.derivatives(dims)):
        return ()
    found: set[str] = set()
    for term in equation.terms:
        sides = expand(term, equation.fields, dims)
        if sides is None:  # a term that does not say
            return equation.fields
        for side in sides:
            derivatives = [a for a in atoms(side) if isinstance(a, FieldDerivative)]
            found |= {a.field for a in derivatives if a.operator.inverse_laplacians}
    return tuple(name for name in equation.fields if name in found)


def own_order(equation: Equation, name: str, axis: int, dims: int) -> int | None:
    """The highest derivative of a field along an axis in its own equation; None if a term does not
    say."""
    highest = 0
    for term in equation.terms:
        sides = expand(term, equation.fields, dims)
        if sides is None:
            return None
        for atom in atoms(sides[equation.fields.index(name)]):
            if isinstance(atom, FieldDerivative) and atom.field == name:
                inverse = 2 * atom.operator.inverse_laplacians
                orders = [index[axis] - inverse for index, _ in atom.operator.terms]
                highest = max(highest, *orders)
    return highest
