"""Where a field lives, and what holds at its edges."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from .errors import SplatopError, unknown_name
from .shapes import Shape, shape_as_dict, shape_from_dict

AXES = "xyz"
Kind = Literal["value", "slope", "free"]


@dataclass(frozen=True)
class Condition:
    """What holds for one field at one end: its value, its slope along the outward normal, or
    nothing (`free`, an outflow).

    `value` is a number, or the text of an expression in coefficients and in the coordinates along
    the side.
    """

    kind: Kind
    value: float | str = 0.0

    def __post_init__(self):
        if self.kind not in ("value", "slope", "free"):
            raise unknown_name("kind of condition", self.kind, ("value", "slope", "free"))
        if not isinstance(self.value, str) and not math.isfinite(self.value):
            raise SplatopError(f"expected a finite value at an edge, got {self.value}")
        if self.kind == "free" and self.value != 0:
            raise SplatopError(f"expected no value at a free edge, got {self.value}")

    @property
    def order(self) -> int:
        """Of the derivative that is set: 0 for a value, 1 for a slope."""
        return int(self.kind == "slope")

    def text(self, name: str) -> str:
        """In the language of boundaries, for the field of this name."""
        if self.kind == "free":
            return f"free({name})"
        value = self.value if isinstance(self.value, str) else _shortest(self.value)
        return f"{name} = {value}" if self.kind == "value" else f"dn({name}) = {value}"


FREE = Condition("free")


def potential(name: str) -> str:
    """What an equation calls the inverse Laplacian of a field, which has conditions of its own."""
    return f"invlap({name})"


@dataclass(frozen=True)
class Axis:
    """One side of the box, from `origin` on: closed to a ring, or with two ends."""

    length: float
    origin: float = 0.0
    periodic: bool = True

    def __post_init__(self):
        if not 0 < self.length < math.inf or not math.isfinite(self.origin):
            raise SplatopError(
                f"expected an axis of finite, positive length and a finite origin, got length "
                f"{self.length:g} from {self.origin:g}"
            )


@dataclass(frozen=True)
class Domain:
    """A box whose axes are periodic or have two ends, `x0` and `x1`, with a condition for each
    field there.

    A plain value that JSON holds. `conditions` maps an end and a field's name to what holds; where
    it says nothing for a field, nothing is set (`free`). It is stored as triples. In 2D a `shape`
    may be cut out of the box: then its named edges are where conditions hold. The inverse Laplacian
    of a field, `invlap(w)`, may have conditions as a field has.
    """

    axes: tuple[Axis, ...]
    stated: tuple[tuple[str, str, Condition], ...] = ()
    shape: Shape | None = None

    def __post_init__(self):
        object.__setattr__(self, "axes", tuple(self.axes))
        # Free ends are left out, so that equal domains are equal values.
        held = tuple(sorted((one for one in self.stated if one[2] != FREE), key=lambda t: t[:2]))
        object.__setattr__(self, "stated", held)
        if not 1 <= len(self.axes) <= 3:
            raise SplatopError(f"expected 1 to 3 axes, got {len(self.axes)}")
        if self.shape is not None and (len(self.axes) != 2 or any(a.periodic for a in self.axes)):
            raise SplatopError(
                "expected a shape in 2D, in a box without periodic axes, got "
                f"{len(self.axes)}D{' with a periodic axis' if any(self.periodic) else ''}: shapes "
                "are for 2D data; leave the shape out, or take a plane of the data"
            )
        for side, name in self.conditions:
            if side not in self.sides:
                known = ", ".join(self.sides) or "none: every axis is periodic"
                raise SplatopError(
                    f"expected conditions at an end of the domain ({known}), got one for {name} "
                    f"at {side}"
                )

    @property
    def conditions(self) -> dict[tuple[str, str], Condition]:
        """What holds, by end and field."""
        return {(side, name): one for side, name, one in self.stated}

    @classmethod
    def box(
        cls,
        lengths: Iterable[float],
        origin: Iterable[float] = (),
        periodic: Iterable[bool] = (),
    ) -> "Domain":
        """A box with these sides, periodic unless told otherwise."""
        sides = tuple(lengths)
        begins = tuple(origin) or (0.0,) * len(sides)
        rings = tuple(periodic) or (True,) * len(sides)
        if not len(sides) == len(begins) == len(rings):
            raise SplatopError(
                f"expected one origin and one word on its ends for each of the {len(sides)} axes, "
                f"got {len(begins)} and {len(rings)}"
            )
        return cls(tuple(map(Axis, map(float, sides), map(float, begins), map(bool, rings))))

    @property
    def dims(self) -> int:
        return len(self.axes)

    @property
    def lengths(self) -> tuple[float, ...]:
        return tuple(axis.length for axis in self.axes)

    @property
    def origin(self) -> tuple[float, ...]:
        return tuple(axis.origin for axis in self.axes)

    @property
    def periodic(self) -> tuple[bool, ...]:
        return tuple(axis.periodic for axis in self.axes)

    @property
    def all_periodic(self) -> bool:
        return all(self.periodic)

    @property
    def sides(self) -> tuple[str, ...]:
        """The names of its ends: `x0` and `x1` where x is not periodic, or the shape's edges."""
        if self.shape is not None:
            return self.shape.edge_names
        return tuple(
            f"{name}{end}"
            for name, axis in zip(AXES, self.axes, strict=False)
            if not axis.periodic
            for end in (0, 1)
        )

    def at(self, side: str, name: str) -> Condition:
        """What holds at an end for the field of this name."""
        if side not in self.sides:
            raise unknown_name("end of the domain", side, self.sides)
        return self.conditions.get((side, name), FREE)

    def ends(self, axis: int, name: str) -> tuple[Condition, Condition]:
        """What holds for a field at the two ends of an axis that is not periodic."""
        return self.at(f"{AXES[axis]}0", name), self.at(f"{AXES[axis]}1", name)

    def held_by(self, fields: Iterable[str]) -> dict[tuple[str, str], Condition]:
        """The conditions of these fields and of their inverse Laplacians."""
        names = {name for field in fields for name in (field, potential(field))}
        return {at: one for at, one in self.conditions.items() if at[1] in names}

    def of_potentials(self, fields: Iterable[str]) -> "Domain":
        """The domain of the inverse Laplacians of these fields, under the fields' own names.

        One that nothing is said about is 0 at all edges; no equation may ask for it.
        """
        return self.with_conditions(
            {
                (side, name): Condition("value") if one == FREE else one
                for name in fields
                for side in self.sides
                for one in (self.at(side, potential(name)),)
            }
        )

    def with_conditions(self, conditions: Mapping[tuple[str, str], Condition]) -> "Domain":
        triples = ((side, name, one) for (side, name), one in conditions.items())
        return replace(self, stated=tuple(triples))

    def on(self, lengths: Iterable[float], origin: Iterable[float]) -> "Domain":
        """The same edges around a box of these sides that begins at `origin`."""
        axes = zip(self.axes, lengths, origin, strict=True)
        return replace(
            self, axes=tuple(Axis(length, begin, axis.periodic) for axis, length, begin in axes)
        )

    def describe(self, fields: Iterable[str]) -> str:
        """The domain's edges in the language that `parse_boundary` reads, for these fields."""
        fields = tuple(fields)
        held = {name for _, name in self.conditions}
        fields += tuple(potential(name) for name in fields if potential(name) in held)
        if self.shape is not None:
            return _describe_edges(self, fields)
        parts = []
        for number, (name, axis) in enumerate(zip(AXES, self.axes, strict=False)):
            if axis.periodic:
                parts.append(f"{name}: periodic")
                continue
            both = [
                _conditions_text((self.ends(number, one)[end], one) for one in fields)
                for end in (0, 1)
            ]
            if both[0] == both[1]:
                parts.append(f"{name}: {both[0]}")
            else:
                parts += [f"{name}{end}: {text}" for end, text in enumerate(both)]
        return "; ".join(parts)

    def as_dict(self) -> dict[str, Any]:
        plain = {
            "axes": [
                {"length": a.length, "origin": a.origin, "periodic": a.periodic} for a in self.axes
            ],
            "conditions": [
                {"side": side, "field": name, "kind": one.kind, "value": one.value}
                for (side, name), one in self.conditions.items()
            ],
        }
        return plain if self.shape is None else {**plain, "shape": shape_as_dict(self.shape)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Domain":
        try:
            axes = tuple(
                Axis(float(a["length"]), float(a["origin"]), bool(a["periodic"]))
                for a in values["axes"]
            )
            conditions = {
                (str(c["side"]), str(c["field"])): Condition(
                    c["kind"], c["value"] if isinstance(c["value"], str) else float(c["value"])
                )
                for c in values["conditions"]
            }
            shape = values.get("shape")
        except (KeyError, TypeError, ValueError) as error:
            raise SplatopError(f"expected the description of a domain, got {error}") from error
        held = None if shape is None else shape_from_dict(shape)
        return cls(axes, shape=held).with_conditions(conditions)


def _describe_edges(domain: Domain, fields: tuple[str, ...]) -> str:
    """The edges of a shape, those that are alike together."""
    texts = {
        side: _conditions_text((domain.at(side, one), one) for one in fields)
        for side in domain.sides
    }
    if len(set(texts.values())) == 1:
        return f"all: {next(iter(texts.values()))}"
    return "; ".join(f"{side}: {text}" for side, text in texts.items())


def _conditions_text(held: Iterable[tuple[Condition, str]]) -> str:
    """Free fields are named; inverse Laplacians about which nothing is said are not."""
    said = ((one, name) for one, name in held if one != FREE or not name.endswith(")"))
    return ", ".join(one.text(name) for one, name in said)


def _shortest(number: float) -> str:
    """The fewest digits that give the same number again."""
    short = f"{number:.12g}"
    return short if float(short) == number else repr(float(number))
