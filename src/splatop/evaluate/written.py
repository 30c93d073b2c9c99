"""Numbers as people read them: one place for tables, terminals, charts and the report."""

import math

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def plain(value: float | None, digits: int = 3, *, scientific: int = 2, missing: str = "-") -> str:
    """`0.0123` or `1.2e-05`: for text. `digits` where it is readable, else `scientific` of them."""
    if value is None:
        return missing
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e4:
        return f"{value:.{digits}g}"
    return f"{value:.{scientific - 1}e}"


def typeset(value: float | None, digits: int = 2) -> str:
    """`0.012` or `1.2 × 10⁻⁵`: for the page. Very small and large ones get a power of ten."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)) + 1e-12)
    if -4 <= exponent < 6:
        return minus(f"{value:.{max(0, digits - 1 - exponent)}f}")
    mantissa = minus(f"{value / 10.0**exponent:.{digits - 1}f}")
    return f"{mantissa} × {power_of_ten(exponent)}"


def percent(value: float | None) -> str:
    """A relative error for reading: two digits, as a percentage where that is readable."""
    if value is None or not math.isfinite(value):
        return "no finite value"
    if value == 0:
        return "0 %"
    if abs(value) < 1e-5:
        return typeset(value)
    return minus(f"{float(f'{100 * value:.2g}'):.10g} %")


def with_deviation(mean: float | None, deviation: float | None) -> str:
    """`0.0520 ± 0.0141`, both to the precision that the mean is given in."""
    if mean is None or deviation is None:
        return "-"
    if mean and not 1e-3 <= abs(mean) < 1e4:
        return f"{mean:.1e} ± {deviation:.0e}"
    decimals = 2 if abs(mean) >= 1 else 4
    return f"{mean:.{decimals}f} ± {deviation:.{decimals}f}"


def parameter_count(count: int | None) -> str:
    """`57.8k` or `1.20M`."""
    if not count:
        return "-"
    return f"{count / 1e6:.2f}M" if count >= 1e6 else f"{count / 1e3:.1f}k"


def power_of_ten(exponent: int) -> str:
    """`10⁻⁵`."""
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}"


def minus(text: str) -> str:
    """A number with the sign that is as wide as a digit."""
    return text.replace("-", "−")
