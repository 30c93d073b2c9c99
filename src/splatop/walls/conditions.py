"""Can an equation bear the conditions that are set at the edges, and does it have all it needs?"""

from ..domain import AXES, Domain, potential
from ..equation import Equation
from ..equation.edge_values import value_names
from ..equation.expansion import expand
from ..equation.expression import FieldDerivative, atoms
from ..errors import SplatopError


def check_stated(equation: Equation, domain: Domain) -> None:
    """Refuse values with unknown names in them, and conditions that an equation cannot bear."""
    for (side, name), condition in domain.conditions.items():
        for unknown in value_names(condition):
            if unknown not in equation.coefficient_names:
                raise SplatopError(
                    f"expected numbers, coordinates along the side or coefficients of the equation "
                    f"in '{side}: {condition.text(name)}', got {unknown}: write its number"
                )
    check_potentials(equation, domain)
    _check_stated(equation, domain)


def check_conditions(equation: Equation, domain: Domain) -> None:
    """Refuse a field that diffuses through an end without a condition there, and a field that is
    only carried along an axis but has conditions at both of its ends."""
    if domain.all_periodic:
        return
    check_stated(equation, domain)
    if domain.shape is not None:
        _check_edges(equation, domain)
        return
    for axis, along in enumerate(domain.axes):
        if along.periodic:
            continue
        for name in equation.fields:
            order = own_order(equation, name, axis, domain.dims)
            if order is None:
                continue
            ends = domain.ends(axis, name)
            free = [end for end, one in enumerate(ends) if one.kind == "free"]
            if order >= 2 and free:
                side = f"{AXES[axis]}{free[0]}"
                raise SplatopError(
                    f"expected a condition for {name} at {side}, because its equation has second "
                    f"derivatives along {AXES[axis]}, got 'free': write '{side}: dn({name}) = 0' "
                    "where it flows out, or the value that it has there"
                )
            if order == 1 and not free:
                raise SplatopError(
                    f"expected a condition for {name} at one end of {AXES[axis]} alone, where it "
                    f"flows in, because its equation has first derivatives along {AXES[axis]} and "
                    f"no higher, got one at each: write '{AXES[axis]}0: free' or "
                    f"'{AXES[axis]}1: free' where it flows out"
                )


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


def _check_edges(equation: Equation, domain: Domain) -> None:
    """The same for the edges of a shape."""
    for name in equation.fields:
        orders = [own_order(equation, name, axis, domain.dims) for axis in range(domain.dims)]
        if None in orders:
            continue
        order = max(one for one in orders if one is not None)
        free = [side for side in domain.sides if domain.at(side, name).kind == "free"]
        if order >= 2 and free:
            raise SplatopError(
                f"expected a condition for {name} at {free[0]}, because its equation has second "
                f"derivatives, got 'free': write '{free[0]}: dn({name}) = 0' where it flows out or "
                "nothing passes, or the value that it has there"
            )
        if order == 1 and not free:
            raise SplatopError(
                f"expected conditions for {name} where it flows in alone, because its equation has "
                f"first derivatives and no higher, got one at every edge: write "
                f"'{domain.sides[0]}: free' where it flows out or along"
            )


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
