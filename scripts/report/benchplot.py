# SPDX-License-Identifier: Apache-2.0
"""The plot of scripts/bench/run as one self-contained SVG."""

from xml.sax.saxutils import escape

# Okabe and Ito's colours suit people with any colour vision; the shapes differ, too.
STYLE = {
    "morph": ("Morph", "#0072B2", "circle"),
    "bolt-best": ("BOLT 19, best setting", "#D55E00", "square"),
    "bolt-usual": ("BOLT 19, usual flags", "#8A8A8A", "diamond"),
}
LEFT, TOP, ROW, PANEL, GAP = 132, 140, 46, 290, 56
OFFSETS = {"morph": -11, "bolt-best": 1, "bolt-usual": 12}


def text(x, y, words, size=12, anchor="start", colour="#222222", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}" '
            f'font-weight="{weight}">{escape(words)}</text>')


def marker(x, y, shape, colour, hollow=False):
    fill = "#ffffff" if hollow else colour
    common = f'fill="{fill}" stroke="{colour}" stroke-width="1.6"'
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.6" {common}/>'
    if shape == "square":
        return f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" {common}/>'
    return (f'<path d="M{x:.1f} {y - 5.2:.1f}L{x + 5.2:.1f} {y:.1f}L{x:.1f} {y + 5.2:.1f}'
            f'L{x - 5.2:.1f} {y:.1f}Z" {common}/>')


class Panel:
    """A panel: one figure for each program and version, with whiskers; an arrow if clipped."""

    def __init__(self, x, title, better, unit, low, high, step, zero, form):
        self.x, self.title, self.better, self.unit = x, title, better, unit
        self.low, self.high, self.step, self.zero, self.form = low, high, step, zero, form

    def at(self, value):
        share = (value - self.low) / (self.high - self.low)
        return self.x + PANEL * min(1, max(0, share))

    def frame(self, bottom, left_is_better):
        out = [text(self.x, TOP - 36, self.title, 14, weight="bold"),
               text(self.x, TOP - 18, self.better, 12, colour="#00664B")]
        zero = self.at(self.zero)
        good = (self.x, zero) if left_is_better else (zero, self.x + PANEL)
        out.append(f'<rect x="{good[0]:.1f}" y="{TOP - 6}" width="{good[1] - good[0]:.1f}" '
                   f'height="{bottom - TOP + 6}" fill="#EAF5F0"/>')
        tick = self.low
        while tick <= self.high + 1e-9:
            x, heavy = self.at(tick), abs(tick - self.zero) < 1e-9
            out.append(f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{bottom}" '
                       f'stroke="{"#444444" if heavy else "#D8D8D8"}" stroke-width="{1.3 if heavy else 1}"/>')
            out.append(text(x, bottom + 17, self.form(tick), 11, "middle", "#444444"))
            tick += self.step
        out.append(text(self.x + PANEL / 2, bottom + 36, self.unit, 11, "middle", "#444444"))
        return out

    def point(self, y, version, value, low, high, hollow):
        """A marker at the value and a whisker from low to high; an arrow if it is outside."""
        colour, shape = STYLE[version][1:]
        out = []
        if high > low:
            out.append(f'<line x1="{self.at(low):.1f}" y1="{y}" x2="{self.at(high):.1f}" y2="{y}" '
                       f'stroke="{colour}" stroke-width="2"/>')
        if self.low <= value <= self.high:
            return out + [marker(self.at(value), y, shape, colour, hollow)]
        beyond = value > self.high
        x = self.at(value)
        tip, back = (x + 4, x - 5) if beyond else (x - 4, x + 5)
        out.append(f'<path d="M{tip:.1f} {y}L{back:.1f} {y - 4.5}L{back:.1f} {y + 4.5}Z" fill="{colour}"/>')
        words = self.form(value)
        return out + [text(back + (-4 if beyond else 4), y + 4, words, 11, "end" if beyond else "start", colour)]


def percent(value):
    return "0" if abs(value) < 0.5 else f"{value:+.0f} %".replace("-", "\u2212")


def factor(value):
    return f"{value:.2f}"


def limits(values, low, high, step):
    """Axis ends in whole steps that hold the values, but not beyond low and high."""
    inside = [v for v in values if low <= v <= high]
    bottom = min(inside, default=0)
    top = max(inside, default=0)
    first = max(low, step * (bottom // step))
    last = min(high, step * -(-top // step))
    return first, max(last, first + step)


def spread(values):
    """Ends and step of an axis that holds all values in at most eight round steps."""
    bottom, top = min(values), max(values)
    step = next((s for s in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if (top - bottom) / s <= 6), 100)
    return limits(values, -1e9, 1e9, step) + (step,)


def signed(value):
    return "0" if abs(value) < 0.05 else f"{value:+.3g}".replace("-", "\u2212")


def panels(rows):
    def collect(what):
        return [x for r in rows for v in r["versions"].values() if v[what] for x in v[what] if x is not None]
    x, step = LEFT, PANEL + GAP
    taken = limits(collect("taken") + [0.0], -80, 60, 20)
    *misses, misses_step = spread(collect("misses") + [0.0])
    out = [("taken", Panel(x, "Taken branches", "\u25C4 further left is better", "change against the original; "
                           "line: up to the worst profile", *taken, 20, 0, percent), True),
           ("misses", Panel(x + step, "Instruction cache misses", "\u25C4 further left is better",
                            "change per 1,000 instructions (32 KiB, 8 ways)", *misses, misses_step, 0,
                            signed), True)]
    speeds = collect("speed")
    if speeds:
        low, high = limits(speeds + [1.0], 0.80, 1.40, 0.05)
        out.append(("speed", Panel(x + 2 * step, "Speed", "further right is better \u25BA",
                                   "times as fast as the original; line: 99 % interval",
                                   low, high, 0.05 if high - low < 0.31 else 0.1, 1.0, factor), False))
    return out


def svg(rows):
    """Rows: {"name", "new": never used for tuning, "versions": {version: {"taken", "misses": (mean,
    worst) or None, "speed": (value, low, high) or None, "refused": bool}}}."""
    figures = panels(rows)
    bottom = TOP + ROW * len(rows)
    width = max(LEFT + len(figures) * (PANEL + GAP), 880)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bottom + 54}" '
           f'viewBox="0 0 {width} {bottom + 54}" font-family="Helvetica, Arial, DejaVu Sans, sans-serif">',
           "<title>Morph and BOLT against the original programs</title>",
           f'<rect width="{width}" height="{bottom + 54}" fill="#ffffff"/>',
           text(24, 32, "What timer samples alone are worth: work that the programs were not trained with", 17,
                weight="bold")]
    x = 24
    for version, (title, colour, shape) in STYLE.items():
        out += [marker(x + 6, 57, shape, colour), text(x + 17, 61, title, 12)]
        x += 46 + 6.3 * len(title)
    out += [marker(x + 6, 57, "square", "#666666", True),
            text(x + 17, 61, "hollow: refused at first, figures without the main loop", 12)]
    for _, panel, left in figures:
        out += panel.frame(bottom, left)
    for i, row in enumerate(rows):
        middle = TOP + ROW * i + ROW / 2
        if i:
            new = row["new"] and not rows[i - 1]["new"]
            y, right = TOP + ROW * i, LEFT + len(figures) * (PANEL + GAP) - GAP
            out.append(f'<line x1="24" y1="{y}" x2="{right}" y2="{y}" '
                       f'stroke="{"#555555" if new else "#EEEEEE"}"/>')
            if new:
                out.append(text(24, y + 12, "never used for tuning:", 10, colour="#555555"))
        out.append(text(LEFT - 14, middle + 5, row["name"], 14, "end", weight="bold"))
        for what, panel, _ in figures:
            for version, values in row["versions"].items():
                y, value = middle + OFFSETS[version], values[what]
                if not value:
                    if version == "bolt-best" and values["refused"] and not values["taken"]:
                        out.append(text(panel.at(panel.zero) - 8, y + 8, "BOLT fails", 11, "end",
                                        STYLE[version][1]))
                    continue
                centre = value[0]
                ends = [v for v in value[1:] if v is not None] or [centre]
                low, high = (min(centre, *ends), max(centre, *ends))
                out += panel.point(y, version, centre, low, high, values["refused"])
    return "\n".join(out + ["</svg>", ""])
