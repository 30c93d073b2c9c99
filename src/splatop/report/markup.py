"""HTML that is escaped by construction: plain strings are text, only `Html` is markup."""

import html
import json
from collections.abc import Iterable
from typing import Any


class Html(str):
    """Text that is already markup. Made by `tag` and `join`, and from our own assets."""

    __slots__ = ()


Child = Html | str | int | float | None


def text(value: object) -> Html:
    """A value as text that no browser takes for markup."""
    return value if isinstance(value, Html) else Html(html.escape(str(value), quote=True))


def tag(name: str, *children: Child, **attributes: object) -> Html:
    """`<name ...>children</name>`. "p.note" is a `p` of the class note; in the names of attributes
    `class_` is class and `_` is `-`; attributes and children that are None are left out."""
    name, *classes = name.split(".")
    if classes:
        attributes = {"class_": " ".join(classes), **attributes}
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in ("img", "input", "br", "col"):
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def wide(*children: Child, label: str, class_: str = "scroll") -> Html:
    """What may be wider than the page: it scrolls by itself, also with the keyboard."""
    return tag("div", *children, class_=class_, role="region", aria_label=label, tabindex=0)


def table(head: Iterable[Child], rows: Iterable[Iterable[Child]]) -> Html:
    """Headings above, and rows of which the first cell is the heading."""
    body = []
    for first, *cells in rows:
        body.append(tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in cells)))
    top = tag("tr", *(tag("th", name, scope="col") for name in head))
    return tag("table", tag("thead", top), tag("tbody", *body))


def join(children: Any) -> Html:
    """Children one after the other, None left out."""
    return Html("".join(text(child) for child in children if child is not None))


def embedded_json(value: Any) -> Html:
    """JSON that may stand inside a script element: no end tag, no comment, no NaN."""
    written = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return Html(written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
