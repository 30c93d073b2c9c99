"""Settings from text, as `--set key=value` gives them."""

import math
import types
import typing
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ..errors import SplatopError, unknown_name


def parse_overrides(cls: type, overrides: Mapping[str, str]) -> dict[str, Any]:
    """Text to the types of a dataclass's fields."""
    kinds = typing.get_type_hints(cls)
    names = [f.name for f in fields(cls)]
    parsed = {}
    for name, text in overrides.items():
        if name not in names:
            raise unknown_name("setting", name, names)
        parsed[name] = _parse(name, text, kinds[name])
    return parsed


def _parse(name: str, text: str, kind: Any) -> Any:
    options = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    if type(None) in options and text.lower() in ("none", "auto"):
        return None
    kind = next(option for option in options if option is not type(None))
    try:
        if name == "phases":
            pairs = [pair.split(":") for pair in text.split(",")]
            return tuple((int(points), int(steps)) for points, steps in pairs)
        if typing.get_origin(kind) is tuple:
            return tuple(part.strip() for part in text.split(",") if part.strip())
        if kind is bool:
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[
                text.lower()
            ]
        value = kind(text)
        if kind is float and not math.isfinite(value):
            raise ValueError(text)
        return value
    except (KeyError, ValueError) as error:
        wanted = (
            "points:steps[,points:steps...]"
            if name == "phases"
            else getattr(kind, "__name__", "a comma-separated list")
        )
        given = text if len(text) <= 40 else f"{text[:12]}... ({len(text)} characters)"
        finite = "a finite " if kind is float else ""
        raise SplatopError(
            f"expected {finite}{wanted} for setting '{name}', got '{given}'"
        ) from error
