"""A hook of mkdocs: formulas as MathML, which browsers draw by themselves."""

import re

from latex2mathml.converter import convert

_CODE = re.compile(r"(```.*?```|`[^`\n]+`)", re.DOTALL)
_DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
_INLINE = re.compile(r"(?<![\\$\w])\$([^$\n]+?)\$(?![\w$])")


def on_page_markdown(markdown: str, **_) -> str:
    """Replace what stands between dollar signs, outside of code."""
    parts = _CODE.split(markdown)
    return "".join(part if index % 2 else _formulas(part) for index, part in enumerate(parts))


def _formulas(text: str) -> str:
    text = _DISPLAY.sub(lambda m: f"\n\n{convert(m[1].strip(), display='block')}\n\n", text)
    return _INLINE.sub(lambda m: convert(m[1]), text)
