"""What stands in tables for a missing number: words, and numbers such as -9999."""

import warnings
from typing import Any

import numpy as np

# Beside 99, 999.9, -9999 and so on; and from where on any number does.
_CODES, _FILLED = (32767.0, 32768.0, 1e10), 1e19
# Words that stand for a missing number, in lower case.
_WORDS = ("m", "mm", "-", "--", "---", "----", "*", "**", "***", "na", "n/a", "nan", "none")
_WORDS = (*_WORDS, "null", "nodata", "missing", "bad", "")


def without_words(table: Any, source: str) -> Any:
    """With NaN for words such as M or --- in columns whose other values are all numbers; the
    warning says which."""
    import pandas as pd

    found, said = {}, set()
    count = 0
    for column in table.columns:
        held = table[column]
        if held.dtype.kind in "fiubmM" or pd.api.types.is_datetime64_any_dtype(held):
            continue
        numbers: Any = pd.to_numeric(held, errors="coerce")
        words = held[numbers.isna() & held.notna()].astype(str).str.strip()
        if not len(words) or numbers.notna().sum() < len(words):
            continue
        if words.str.lower().isin(_WORDS).all():
            found[column] = numbers
            said |= set(words)
            count += len(words)
    if found:
        which, names = sorted(said)[:3], [str(column) for column in found]
        more = f" and {len(names) - 3} others" if len(names) > 3 else ""
        warnings.warn(
            f"{source}: {count} values of {', '.join(map(repr, which))} in "
            f"{', '.join(names[:3])}{more} count as missing",
            stacklevel=4,
        )
    return table.assign(**found) if found else table


def without_codes(values: np.ndarray, field: str, source: str) -> np.ndarray:
    """With NaN for codes such as -9999, if they lie as far from all other values as these do from
    each other; the warning says which."""
    size = np.abs(values)
    digits = [set(f"{one:.6g}".replace(".", "")) if one >= 99 else set() for one in size]
    code = np.array([own == {"9"} for own in digits], bool)
    # Six digits hold nines only up to 999999; longer ones are rounded to a power of ten.
    code |= np.isin(size, _CODES) | (size > _FILLED) | np.isin(size, [10.0**k - 1 for k in (7, 8)])
    rest = values[~code & np.isfinite(values)]
    if not code.any() or not len(rest):
        return values
    reach = np.ptp(rest)
    code &= (values < rest.min() - reach) | (values > rest.max() + reach)
    if not code.any():
        return values
    which = ", ".join(f"{one:.9g}" for one in np.unique(values[code])[:3])
    warnings.warn(
        f"{source}: {int(code.sum())} values of {which} in {field} count as missing, all others "
        f"lie between {rest.min():g} and {rest.max():g}",
        stacklevel=4,
    )
    return np.where(code, np.nan, values)
