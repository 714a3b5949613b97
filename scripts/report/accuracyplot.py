# SPDX-License-Identifier: Apache-2.0
"""The plot of scripts/bench/accuracy as one self-contained SVG."""

import math
from xml.sax.saxutils import escape

from benchplot import text

# The colours are Okabe and Ito's; line styles differ, too.
KINDS = {
    "samples": ("timer samples", "#0072B2", ""),
    "ideal": ("samples without bias, drawn from exact counts", "#8A8A8A", "3 4"),
    "transfers": ("transfers of control, drawn from exact counts", "#D55E00", "9 4"),
}
LEFT, TOP, WIDTH, HEIGHT, GAP = 70, 96, 420, 300, 70
GROUPS = (("fresh", "Files that no constant was fitted to"), ("tuned", "Files that constants were fitted to"))
LOW, HIGH = -0.2, 1.0


def curve(result, source, worth):
    """{size: mean worth}."""
    points = {}
    for row in result["rows"]:
        if row["source"] == source and row["size"] >= 1:
            share = worth(result, row)
            if share is not None:
                points.setdefault(row["size"], []).append(share)
    return {size: sum(v) / len(v) for size, v in points.items()}


class Panel:
    def __init__(self, x, title, sizes):
        self.x, self.title = x, title
        self.first, self.last = math.log10(min(sizes)), math.log10(max(sizes))

    def at(self, size, share):
        x = self.x + WIDTH * (math.log10(size) - self.first) / (self.last - self.first)
        y = TOP + HEIGHT * (HIGH - min(HIGH, max(LOW, share))) / (HIGH - LOW)
        return x, y

    def frame(self, sizes):
        out = [text(self.x, TOP - 22, self.title, 14, weight="bold")]
        for tick in range(round(LOW * 10), round(HIGH * 10) + 1, 2):
            y = self.at(sizes[0], tick / 10)[1]
            out.append(f'<line x1="{self.x}" y1="{y:.1f}" x2="{self.x + WIDTH}" y2="{y:.1f}" '
                       f'stroke="{"#444444" if tick == 0 else "#D8D8D8"}"/>')
            out.append(text(self.x - 8, y + 4, f"{10 * tick}", 11, "end", "#444444"))
        for size in sizes:
            x = self.at(size, 0)[0]
            out.append(text(x, TOP + HEIGHT + 17, f"{size:,.0f}", 11, "middle", "#444444"))
        out.append(text(self.x + WIDTH / 2, TOP + HEIGHT + 38, "samples, or transfers", 12, "middle"))
        return out

    def line(self, points, colour, dash, width, opacity):
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in
                        (self.at(size, share) for size, share in sorted(points.items())))
        return (f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="{width}" '
                f'stroke-dasharray="{dash}" stroke-opacity="{opacity}"/>')

    def labels(self, curves, colour):
        """Each line's name at its end; the names do not overlap."""
        ends = sorted((self.at(max(p), p[max(p)])[::-1], name) for name, p in curves.items())
        out, last = [], -math.inf
        for (y, x), name in ends:
            last = max(y + 3, last + 10)
            out.append(text(x + 4, last, name, 9, colour=colour))
        return out

    def draw(self, results, sizes, worth):
        out = self.frame(sizes)
        for source, (_, colour, dash) in KINDS.items():
            curves = {n: {s: v for s, v in curve(r, source, worth).items() if s in sizes}
                      for n, r in results.items()}
            curves = {n: c for n, c in curves.items() if c}
            # Use only sizes that all files have: means over different files would form no curve.
            common = [s for s in sizes if curves and all(s in c for c in curves.values())]
            if source == "samples":
                out += [self.line(points, colour, "", 1, 0.45) for points in curves.values()]
                out += self.labels(curves, colour)
            if common:
                points = {s: sum(c[s] for c in curves.values()) / len(curves) for s in common}
                out.append(self.line(points, colour, dash, 3, 1))
        return out


def plot(results, worth):
    good = {n: r for n, r in results.items() if "error" not in r}
    sizes = sorted({r["size"] for x in good.values() for r in x["rows"] if r["source"] == "ideal"})
    width = LEFT + 2 * WIDTH + 2 * GAP + 40
    height = TOP + HEIGHT + 96
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}" font-family="sans-serif">',
           f'<title>{escape("What a profile is worth, by its size")}</title>',
           f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
           text(LEFT, 28, "Saved taken branches on other work, percent of what exact counts save", 16,
                weight="bold"),
           text(LEFT, 48, "thick: mean of all files; thin: each file by its timer samples", 12,
                colour="#444444")]
    for i, (split, title) in enumerate(GROUPS):
        chosen = {n: r for n, r in good.items() if r["split"] == split}
        if chosen and len(sizes) > 1:
            panel = Panel(LEFT + i * (WIDTH + GAP + 30), title, sizes)
            out += panel.draw(chosen, sizes, worth)
    x = LEFT
    for label, colour, dash in KINDS.values():
        y = height - 18
        out.append(f'<line x1="{x}" y1="{y}" x2="{x + 36}" y2="{y}" stroke="{colour}" '
                   f'stroke-width="3" stroke-dasharray="{dash}"/>')
        out.append(text(x + 44, y + 4, label, 12))
        x += 60 + 7 * len(label)
    return "\n".join([*out, "</svg>"]) + "\n"
