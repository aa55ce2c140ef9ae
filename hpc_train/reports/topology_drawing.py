"""NodeTopology -> SVG: NUMA nodes with their GPUs and adapters, above them the links of the GPUs.

Written without a library: a compute node, where the topology is read, may have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from hpc_train.model.node_topology import GpuLink, NodeTopology, meaning, nearest_nics
from hpc_train.reports.topology_layout import (
    BOX,
    GAP,
    LINE,
    PAD,
    Column,
    Sheet,
    drawn_links,
    sheet_of,
    socket_of,
    span,
)
from hpc_train.reports.topology_text import common_label, headline

_LETTER, _TITLE_LETTER = 6.4, 9.0
_FARTHEST = "SYS"
_STYLE = """\
svg { background: #fff } text { font: 12px sans-serif; fill: #111; text-anchor: middle }
.title { font-size: 15px; font-weight: bold; text-anchor: start } .left { text-anchor: start }
.bold { font-weight: bold } .grey { fill: #555 }
.socket { fill: #f2f2f2; stroke: #999 } .numa { fill: #fff; stroke: #999 }
.gpu { fill: #cfe3f5; stroke: #0b5394 } .nic { fill: #fbe3c8; stroke: #a65a00 }
.link { fill: none; stroke: #0b5394; stroke-width: 2 } .bar { fill: #0b5394 } .white { fill: #fff }
.path { fill: none; stroke: #a65a00; stroke-width: 1.6 }
.PHB { stroke-dasharray: 8 3 } .NODE { stroke-dasharray: 4 4 } .SYS { stroke-dasharray: 1 4 }
.apart { stroke-dasharray: 4 4; stroke: #555 }"""


def topology_svg(topology: NodeTopology) -> str:
    """Return the drawing as a file of its own."""
    sheet, links = sheet_of(topology), drawn_links(topology)
    legend = tuple(_legend(topology, links))
    title = headline(topology)
    width = max(sheet.width, len(title) * _TITLE_LETTER, *(len(one) * _LETTER for one in legend), 0)
    width += 2 * PAD
    height = sheet.bottom + 18 * len(legend) + 2 * PAD
    parts = (
        _text(PAD, 26, title, "title"),
        *_sockets(sheet),
        *(part for column in sheet.columns for part in _column(sheet, column)),
        *_paths(sheet),
        *_links(sheet, links),
        *(_text(PAD, sheet.bottom + 24 + 18 * i, line, "left") for i, line in enumerate(legend)),
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">'
    )
    return "\n".join((head, f"<style>{_STYLE}</style>", *parts, "</svg>\n"))


def _sockets(sheet: Sheet) -> Iterator[str]:
    for socket in dict.fromkeys(socket_of(one) for one in sheet.columns):
        own = [one for one in sheet.columns if socket_of(one) == socket]
        if socket is not None:
            left, right = own[0].left - PAD, own[-1].left + own[-1].width + PAD
            height = sheet.bottom - sheet.top
            yield _box(left, sheet.top, right - left, height, "socket")
            yield _text((left + right) / 2, sheet.bottom - 6, f"socket {socket}", "grey")


def _column(sheet: Sheet, column: Column) -> Iterator[str]:
    height = sheet.bottom - sheet.top - 2 * PAD - 6
    yield _box(column.left, sheet.top + PAD, column.width, height, "numa")
    for kind, names, row in (
        ("gpu", [f"GPU {place.gpu}" for place in column.gpus], 0),
        ("nic", column.nics, LINE + GAP),
    ):
        for index, name in enumerate(names):
            middle, top = column.centre(index, len(names)), sheet.top + 2 * PAD + row
            yield _box(middle - BOX / 2, top, BOX, LINE, kind)
            yield _text(middle, top + 18, _cut(name, BOX))
    middle, base = column.left + column.width / 2, sheet.bottom - 2 * PAD - 14
    title = f"NUMA node {column.node.number}" if column.node else "NUMA node not known"
    yield _text(middle, base - 6, title, "bold")
    if column.node and column.node.cpus:
        yield _text(middle, base + 9, _cut(f"cores {column.node.cpus}", column.width), "grey")


def _paths(sheet: Sheet) -> Iterator[str]:
    """Draw each GPU's path to its nearest adapters, unless that leads through the other socket."""
    top = sheet.top + 2 * PAD + LINE
    for place in sheet.topology.gpus:
        for name in nearest_nics(place):
            level = dict(place.nics)[name]
            if level != _FARTHEST and name in sheet.nics:
                x, y = sheet.gpus[place.gpu], sheet.nics[name]
                yield f'<path class="path {level}" d="M{x:.0f} {top:.0f}L{y:.0f} {top + GAP:.0f}"/>'


def _links(sheet: Sheet, links: Sequence[GpuLink]) -> Iterator[str]:
    top, label = sheet.top + 2 * PAD, common_label(sheet.topology)
    if label:
        ends = sheet.gpus.values()
        left, right = min(ends) - BOX / 2, max(ends) + BOX / 2
        for middle in ends:
            yield f'<path class="link" d="M{middle:.0f} {top:.0f}V{sheet.top - 12:.0f}"/>'
        yield _box(left, sheet.top - 34, right - left, 22, "bar")
        yield _text((left + right) / 2, sheet.top - 19, _common_text(label, right - left), "white")
    several = len({link.label for link in links}) > 1
    for link in links:
        first, second = sorted(sheet.gpus[gpu] for gpu in link.gpus)
        peak = sheet.top - 6 - 13 * span(sheet.columns, link)
        apart = "" if link.direct else " apart"
        yield (
            f'<path class="link{apart}" d="M{first:.0f} {top:.0f}C{first:.0f} {peak:.0f} '
            f'{second:.0f} {peak:.0f} {second:.0f} {top:.0f}"/>'
        )
        if several:
            # The curve reaches three quarters of the height of its two handles.
            yield _text((first + second) / 2, top + 0.75 * (peak - top) - 3, link.label)


def _common_text(label: str, width: float) -> str:
    whole = f"{label} between all pairs: {meaning(label)}"
    return whole if len(whole) * _LETTER < width else label


def _legend(topology: NodeTopology, links: Sequence[GpuLink]) -> Iterator[str]:
    drawn = dict.fromkeys(link.label for link in links)
    others = dict.fromkeys(one.label for one in topology.links if one.label not in drawn)
    if drawn:
        yield f"curves: {_words(drawn)}"
    if others and not common_label(topology):
        yield f"{'other ' if drawn else ''}pairs of GPUs: {_words(others)}"
    near = dict.fromkeys(
        dict(place.nics)[name] for place in topology.gpus for name in nearest_nics(place)[:1]
    )
    for level in near:
        drawing = "no line" if level == _FARTHEST else "lines"
        yield f"GPU to nearest adapters ({drawing}): {level}, {meaning(level)}"


def _words(labels: Iterable[str]) -> str:
    return "; ".join(f"{label}, {meaning(label)}" for label in labels)


def _box(left: float, top: float, width: float, height: float, kind: str) -> str:
    place = f'x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return f'<rect class="{kind}" rx="4" {place}/>'


def _text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}">{escape(words)}</text>'


def _cut(words: str, width: float) -> str:
    most = int(width / _LETTER)
    return words if len(words) <= most else f"{words[: most - 1]}…"
