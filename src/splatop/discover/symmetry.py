"""Which candidates respect the symmetries that the user names."""

from collections.abc import Iterable
from dataclasses import dataclass

from ..equation.calculus import differentiate, laplace
from ..equation.expression import Expression, FieldDerivative, Monomial
from ..errors import SplatopError, unknown_name
from .candidates import Candidate

SYMMETRIES = ("rotation", "mirror", "galilei", "conservation")
_VELOCITIES = (("u", "v", "w"), ("vx", "vy", "vz"), ("ux", "uy", "uz"), ("u_x", "u_y", "u_z"))


def symmetry_names(given: str | Iterable[str]) -> tuple[str, ...]:
    """Symmetries from a text such as "rotation, mirror", or from their names."""
    listed = given.split(",") if isinstance(given, str) else given
    names = tuple(dict.fromkeys(name.strip() for name in listed if name.strip()))
    for name in names:
        if name not in SYMMETRIES:
            raise unknown_name("symmetry", name, SYMMETRIES)
    return names


@dataclass(frozen=True)
class Setting:
    """What candidates are made of: the fields, and how they behave when the axes turn.

    `velocity` names the fields that are the components of one, along x, y and z; they turn and
    flip with the axes. All others are scalars.
    """

    fields: tuple[str, ...]
    dims: int
    symmetries: frozenset[str] = frozenset()
    velocity: tuple[str, ...] = ()
    degree: int = 3
    order: int = 4
    # Whether the velocity of a vorticity is among the candidates, which needs a periodic box.
    streams: bool = True

    @classmethod
    def of(
        cls,
        fields: tuple[str, ...],
        dims: int,
        symmetries: str | Iterable[str],
        velocity: Iterable[str] | None,
        degree: int,
        order: int,
    ) -> "Setting":
        wanted = frozenset(symmetry_names(symmetries))
        if not 1 <= degree <= 5 or not 0 <= order <= 6:
            raise SplatopError(
                f"expected a degree of 1 to 5 and an order of 0 to 6, got {degree} and {order}"
            )
        if velocity is None:
            velocity = usual_velocity(fields, dims, wanted)
        velocity = tuple(velocity)
        for name in velocity:
            if name not in fields:
                raise unknown_name("field", name, fields)
        if velocity and len(velocity) != dims:
            raise SplatopError(
                f"expected one component of the velocity for each of {dims} axes, got "
                f"{', '.join(velocity)}"
            )
        return cls(fields, dims, wanted, velocity, degree, order)

    @property
    def scalars(self) -> tuple[str, ...]:
        return tuple(field for field in self.fields if field not in self.velocity)

    def tied(self, field: str) -> tuple[str, ...]:
        """The fields that share the coefficients of this one's equation."""
        turned = "rotation" in self.symmetries and self.dims > 1
        return self.velocity if turned and field in self.velocity else (field,)

    def value(self, field: str) -> Expression:
        return Expression.atom(FieldDerivative(field, (0,) * self.dims))


def usual_velocity(
    fields: tuple[str, ...], dims: int, wanted: Iterable[str] = ()
) -> tuple[str, ...]:
    """Fields with the names of a velocity; in 1D, the only field if Galilei is asked for."""
    for names in _VELOCITIES:
        if dims > 1 and set(names[:dims]) <= set(fields):
            return names[:dims]
    return fields if dims == 1 and len(fields) == 1 and "galilei" in wanted else ()


def keeps(setting: Setting, candidate: Candidate) -> bool:
    """Whether a candidate respects the mirror and Galilei symmetry, if these are asked for."""
    if "mirror" in setting.symmetries and not _mirrored(setting, candidate):
        return False
    return "galilei" not in setting.symmetries or _galilean(setting, candidate)


def _mirrored(setting: Setting, candidate: Candidate) -> bool:
    """Each monomial flips with an axis as the left-hand side does."""
    for field, side in candidate.sides:
        for axis in range(setting.dims):
            flips = {setting.velocity[axis]} if setting.velocity else set()
            own = field in flips
            if any(_odd(monomial, axis, flips) != own for monomial, _ in side.monomials):
                return False
    return True


def _odd(monomial: Monomial, axis: int, flips: set[str]) -> bool:
    total = 0
    for atom, exponent in monomial:
        if isinstance(atom, FieldDerivative):
            total += int(exponent) * (atom.index[axis] + (atom.field in flips))
    return bool(total % 2)


def _galilean(setting: Setting, candidate: Candidate) -> bool:
    """No velocity stands bare, except where it carries a field along."""
    return all(
        side.canonical() == transport(setting, field).canonical() or not _bare(setting, side)
        for field, side in candidate.sides
    )


def _bare(setting: Setting, side: Expression) -> bool:
    for monomial, _ in side.monomials:
        for atom, _ in monomial:
            if not isinstance(atom, FieldDerivative):
                continue
            own = atom.field in setting.velocity
            if (own and atom.order == 0) or (atom.inverses and atom.order < 2):
                return True
    return False


def transport(setting: Setting, field: str) -> Expression:
    """The velocity times the gradient of a field; of a vorticity, by its stream function."""
    value = setting.value(field)
    if setting.velocity:
        return Expression.sum(
            setting.value(name) * differentiate(value, axis)
            for axis, name in enumerate(setting.velocity)
        )
    if setting.dims != 2:
        return Expression()
    return stream_transport(field, field)


def stream_transport(field: str, carried: str) -> Expression:
    """`dx(ψ) dy(f) - dy(ψ) dx(f)` with `Δψ` the first field."""
    stream = FieldDerivative(field, (0, 0)).inverse_laplacian()
    value = FieldDerivative(carried, (0, 0))
    one = Expression.product([(stream.along(0), 1), (value.along(1), 1)])
    return one - Expression.product([(stream.along(1), 1), (value.along(0), 1)])


def conserved(setting: Setting, fluxes: Iterable[Expression]) -> list[Expression]:
    """Divergences: derivatives along an axis of products of one order less."""
    found = []
    for flux in fluxes:
        order = sum(
            a.order * int(e)
            for m, _ in flux.monomials
            for a, e in m
            if isinstance(a, FieldDerivative)
        )
        if order < setting.order:
            found += [differentiate(flux, axis) for axis in range(setting.dims)]
    if setting.dims == 2 and len(setting.fields) <= 2:
        found += [stream_transport(f, g) for f in setting.fields for g in setting.fields]
    return [side for side in found if side]


# --- isotropic terms in 2D and 3D -----------------------------------------------------------------


def isotropic(setting: Setting, field: str) -> list[Candidate]:
    """Terms that look the same along any axes: scalars, or vectors for the velocity's equation."""
    conservative = "conservation" in setting.symmetries
    if field in setting.velocity:
        sides = _vectors(setting, conservative)
        return [Candidate(tuple(zip(setting.velocity, one, strict=True))) for one in sides]
    sides = _divergences(setting) if conservative else _scalars(setting)
    return [Candidate.of(field, side) for side in sides if side]


def _dot(left: list[Expression], right: list[Expression]) -> Expression:
    return Expression.sum(a * b for a, b in zip(left, right, strict=True))


def _scalars(setting: Setting) -> list[Expression]:
    d, n = setting.degree, setting.order
    fields = [setting.value(name) for name in setting.scalars]
    lap = [laplace(f, setting.dims) for f in fields]
    bilap = [laplace(f, setting.dims) for f in lap]
    axes = range(setting.dims)

    def grad(f: Expression) -> list[Expression]:
        return [differentiate(f, axis) for axis in axes]

    def hessian(f: Expression) -> list[Expression]:
        return [differentiate(differentiate(f, i), j) for i in axes for j in axes]

    one = Expression.number(1)
    powers: list[list[Expression]] = [[one]]
    for _ in range(d):
        powers.append([p * f for p in powers[-1] for f in fields])
    found = [p for level in powers for p in level]
    for level, front in enumerate(powers[:d]):
        room = d - level
        for p in front:
            if n >= 2:
                found += [p * f for f in lap]
            if n >= 4:
                found += [p * f for f in bilap]
            if room < 2:
                continue
            for f, lf in zip(fields, lap, strict=True):
                for g, lg in zip(fields, lap, strict=True):
                    if n >= 2:
                        found.append(p * _dot(grad(f), grad(g)))
                    if n >= 4:
                        found += [
                            p * lf * lg,
                            p * _dot(grad(f), grad(lg)),
                            p * _dot(hessian(f), hessian(g)),
                        ]
                    if n >= 4 and room >= 3:
                        found += [lh * _dot(grad(f), grad(g)) * p for lh in lap]
                        bent = [
                            Expression.sum(
                                differentiate(f, i)
                                * differentiate(g, j)
                                * differentiate(differentiate(h, i), j)
                                for i in axes
                                for j in axes
                            )
                            for h in fields
                        ]
                        found += [p * one for one in bent]
    if setting.dims == 2:
        found += [stream_transport(f, g) for f in setting.scalars for g in setting.scalars]
        found += [
            Expression.atom(FieldDerivative(f, (0, 0)).inverse_laplacian()) for f in setting.scalars
        ]
    if setting.velocity:
        v = [setting.value(name) for name in setting.velocity]
        spread = Expression.sum(differentiate(c, i) for i, c in enumerate(v))
        speed = _dot(v, v)
        found += [spread, speed, *(f * spread for f in fields), *(f * speed for f in fields)]
        found += [_dot(v, grad(f)) for f in fields]
    return list(dict.fromkeys(side.canonical() for side in found))


def _divergences(setting: Setting) -> list[Expression]:
    fields = [setting.value(name) for name in setting.scalars]
    one = Expression.number(1)
    fronts = [one, *fields, *(f * g for f in fields for g in fields)]
    found = []
    for f in fields:
        higher = laplace(f, setting.dims)
        for inner in (f, higher) if setting.order >= 4 else (f,):
            for front in fronts[
                : 1 + len(fields) * (setting.degree > 1) + len(fields) ** 2 * (setting.degree > 2)
            ]:
                flux = [front * differentiate(inner, axis) for axis in range(setting.dims)]
                found.append(Expression.sum(differentiate(c, i) for i, c in enumerate(flux)))
    if setting.velocity:
        v = [setting.value(name) for name in setting.velocity]
        found += [
            Expression.sum(differentiate(f * c, i) for i, c in enumerate(v)) for f in (one, *fields)
        ]
    elif setting.dims == 2:
        found += [stream_transport(f, g) for f in setting.scalars for g in setting.scalars]
    return found


def _vectors(setting: Setting, conservative: bool) -> list[list[Expression]]:
    dims, axes = setting.dims, range(setting.dims)
    v = [setting.value(name) for name in setting.velocity]
    fields = [setting.value(name) for name in setting.scalars]
    spread = Expression.sum(differentiate(c, i) for i, c in enumerate(v))
    speed = _dot(v, v)

    def grad(f: Expression) -> list[Expression]:
        return [differentiate(f, axis) for axis in axes]

    lap = [laplace(c, dims) for c in v]
    found = [lap, grad(spread), grad(speed), *(grad(f) for f in fields)]
    if setting.order >= 4:
        found += [[laplace(c, dims) for c in lap], grad(laplace(spread, dims))]
    if conservative:
        found.append([Expression.sum(differentiate(v[i] * v[j], j) for j in axes) for i in axes])
        return [*found, *(grad(f * g) for f in fields for g in fields)]
    found += [
        [Expression.sum(v[j] * differentiate(v[i], j) for j in axes) for i in axes],
        v,
        [c * speed for c in v],
        [c * spread for c in v],
        *([f * c for c in v] for f in fields),
        *([f * g * c for c in v] for f in fields for g in fields),
        *([f * c for c in lap] for f in fields),
        *([f * c for c in grad(g)] for f in fields for g in fields),
    ]
    return found
