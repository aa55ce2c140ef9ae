"""SVG of matplotlib -> SVG for a page: unique ids, text as text, a title for each mark."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree as Xml

from hpc_train.reports.figures.canvas import NARROW, Canvas
from hpc_train.reports.formats.sanitize import one_line

_SPACE = re.compile(r"^\{[^}]*\}")
_REFERENCE = re.compile(r"(?:url\(#|^#)([^)]+)\)?")
# What matplotlib says in a stylesheet, which would hold for the whole page.
STROKES = "stroke-linejoin:round;stroke-linecap:butt"
DECIMALS = re.compile(r"(\d\.\d\d)\d+")


def inlined(svg: bytes, name: str, canvas: Canvas) -> bytes:
    """Return the SVG as an element of a page that may contain several.

    Every id begins with the figure's name, there are no global styles or metadata, and `<title>`
    children describe the figure and each mark.
    """
    # Trusted input: matplotlib has just written it.
    root = Xml.fromstring(svg)  # noqa: S314
    for element in root.iter():
        _without_namespaces(element)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == "metadata" or child.find("style") is not None:
                parent.remove(child)
    groups = {element.get("id"): element for element in root.iter("g")}
    for group, titles in canvas.hovers.items():
        _entitle(groups[group], titles)
    _rename(root, name)
    width = root.attrib.pop("width")
    root.attrib.pop("height")
    root.attrib.pop("version", None)
    root.attrib |= {
        "xmlns": "http://www.w3.org/2000/svg",
        "role": "img",
        "aria-labelledby": f"{name}-title",
        "class": "broad" if float(width.removesuffix("pt")) > 72 * NARROW else "",
        "style": f"width:100%;max-width:{width};height:auto;{STROKES}",
    }
    title = Xml.Element("title", {"id": f"{name}-title"})
    title.text, title.tail = one_line(canvas.caption), "\n"
    root.insert(0, title)
    return Xml.tostring(root, encoding="unicode").encode()


def _without_namespaces(element: Xml.Element) -> None:
    element.tag = _SPACE.sub("", element.tag)
    plain = {_SPACE.sub("", key): value for key, value in element.attrib.items()}
    element.attrib.clear()
    element.attrib.update(plain)
    if element.text and not element.text.strip():
        element.text = None
    if element.tail and not element.tail.strip():
        element.tail = None


def _entitle(group: Xml.Element, titles: list[str]) -> None:
    """Give each mark its title, and move common styles to the group, which keeps pages small."""
    marks = [mark for mark in group.iter("use")] or _paths(group)
    for mark, text in zip(marks, titles, strict=True):
        Xml.SubElement(mark, "title").text = text
    styles = [mark.get("style") for mark in marks]
    if styles[0] and all(a == b for a, b in pairwise(styles)) and marks[0].tag == "use":
        for holder in group.iter("g"):
            if marks[0] in list(holder):
                holder.set("style", styles[0])
        for mark in marks:
            del mark.attrib["style"]
    for mark in marks:
        for key in ("x", "y"):
            if key in mark.attrib:
                mark.set(key, DECIMALS.sub(r"\1", mark.attrib[key]))


def _paths(group: Xml.Element) -> list[Xml.Element]:
    hidden = {path for defs in group.iter("defs") for path in defs.iter("path")}
    return [path for path in group.iter("path") if path not in hidden]


def _rename(root: Xml.Element, name: str) -> None:
    """Prefix referenced ids with the figure's name; remove the others."""
    used = set()
    for element in root.iter():
        for key, value in element.attrib.items():
            if key != "id" and (value.startswith("#") or "url(#" in value):
                used |= set(_REFERENCE.findall(value))
    for element in root.iter():
        own = element.attrib.pop("id", None)
        for key, value in element.attrib.items():
            if key == "href" and value.startswith("#"):
                element.set(key, f"#{name}-{value[1:]}")
            elif "url(#" in value:
                element.set(key, value.replace("url(#", f"url(#{name}-"))
        if own in used:
            element.set("id", f"{name}-{own}")
