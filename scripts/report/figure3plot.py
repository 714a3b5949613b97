# SPDX-License-Identifier: Apache-2.0
"""The plot of scripts/bench/figure3 as one self-contained SVG: bars by program and kind of profile, as in
the paper."""

from benchplot import text

# Okabe and Ito's colours, as in the other plot.
COLOURS = {"statistical": "#0072B2", "pep": "#E69F00", "complete": "#8A8A8A"}
LEFT, TOP, GROUP, BAR, HIGH, GAP = 74, 96, 92, 20, 220, 84


def axis(values):
    """Lowest and highest line, in round steps, that hold the values and zero."""
    bottom, top = min([0, *values]), max([0, *values])
    step = next((s for s in (1, 2, 5, 10, 20) if (top - bottom) / s <= 7), 50)
    return step * (bottom // step), step * max(1, -(-top // step)), step


def percent(value):
    return f"{value:.0f} %".replace("-", "\u2212")


class Panel:
    def __init__(self, y, title, rows, what):
        self.y, self.title, self.rows, self.what = y, title, rows, what
        self.low, self.high, self.step = axis([v for r in rows for three in r[what].values()
                                               for v in three if v is not None])

    def at(self, value):
        return self.y + HIGH * (self.high - value) / (self.high - self.low)

    def frame(self, right):
        out = [text(LEFT, self.y - 14, self.title, 14, weight="bold")]
        value = self.low
        while value <= self.high + 1e-9:
            y, heavy = self.at(value), value == 0
            out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" '
                       f'stroke="{"#444444" if heavy else "#D8D8D8"}"/>')
            out.append(text(LEFT - 8, y + 4, percent(value), 11, "end", "#444444"))
            value += self.step
        return out

    def bar(self, x, key, value, low, high):
        zero, end, middle = self.at(0), self.at(value), x + BAR / 2
        out = [f'<rect x="{x:.1f}" y="{min(zero, end):.1f}" width="{BAR}" '
               f'height="{max(0.6, abs(zero - end)):.1f}" fill="{COLOURS[key]}"/>']
        if low is not None:
            a, b = self.at(low), self.at(high)
            out.append(f'<path d="M{middle} {a:.1f}V{b:.1f}M{middle - 4} {a:.1f}h8M{middle - 4} '
                       f'{b:.1f}h8" stroke="#222222" fill="none"/>')
        return out


def names(rows, y):
    out = []
    for i, row in enumerate(rows):
        x = LEFT + GROUP * i + GROUP / 2
        out.append(text(x, y, row["name"], 12, "middle", weight="bold"))
        if row["paper"] != row["name"]:
            out.append(text(x, y + 15, f"({row['paper']})", 11, "middle", "#555555"))
    return out


def svg(rows, kinds):
    """Rows: {"name", "paper", "time", "taken": {kind: (value, low, high)}}; kinds: (key, title)."""
    kinds = [(k, t) for k, t in kinds if any(k in r["taken"] for r in rows)]
    panels, y = [], TOP
    for what, title in (("time", "Time saved, % of the original's (line: 99 % interval)"),
                        ("taken", "Taken branches saved, % of the original's (exact counts)")):
        if any(r[what] for r in rows):
            panels.append(Panel(y, title, rows, what))
            y += HIGH + GAP
    right, bottom = LEFT + GROUP * len(rows), y - GAP + 54
    width = max(right + 24, 700)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bottom}" '
           f'viewBox="0 0 {width} {bottom}" font-family="Helvetica, Arial, DejaVu Sans, sans-serif">',
           "<title>Optimisation by kinds of profiles</title>",
           f'<rect width="{width}" height="{bottom}" fill="#ffffff"/>',
           text(24, 30, "Stock programs laid out by each kind of profile; tested with work that they "
                "were not trained with", 15, weight="bold")]
    x = 24
    for key, title in kinds:
        out += [f'<rect x="{x}" y="44" width="14" height="14" fill="{COLOURS[key]}"/>',
                text(x + 20, 56, title, 12)]
        x += 50 + 7 * len(title)
    for panel in panels:
        out += panel.frame(right) + names(rows, panel.y + HIGH + 20)
        for i, row in enumerate(rows):
            left = LEFT + GROUP * i + (GROUP - BAR * len(kinds)) / 2
            for j, (key, _) in enumerate(kinds):
                if key in row[panel.what]:
                    out += panel.bar(left + BAR * j, key, *row[panel.what][key])
    return "\n".join(out + ["</svg>", ""])
