# SPDX-License-Identifier: Apache-2.0
"""Writes pictures, films, logic functions and games for scripts/bench/figure3: those for training of
one kind, those for tests of another. The same bytes every time."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from data import Rand


# ---- pictures ---------------------------------------------------------------

def hills(rand, width, height):
    """A plane of smooth noise of three sizes with grain on it, as in a photograph."""
    total = [[0] * width for _ in range(height)]
    for cell, weight in ((64, 150), (16, 60), (4, 30)):
        across = width // cell + 2
        grid = [[rand.below(weight) for _ in range(across)] for _ in range(height // cell + 2)]
        for y in range(height):
            top, below, part = grid[y // cell], grid[y // cell + 1], y % cell
            line = [(a * (cell - part) + b * part) for a, b in zip(top, below)]
            row = total[y]
            for x in range(width):
                i, p = divmod(x, cell)
                row[x] += (line[i] * (cell - p) + line[i + 1] * p) // (cell * cell)
    grain = [rand.below(9) for _ in range(4099)]
    return [bytes(min(255, v + grain[(y * 613 + x) % 4099]) for x, v in enumerate(row))
            for y, row in enumerate(total)]


def page(rand, width, height):
    """A plane of glyphs in lines on white, with bars and frames between, as in a drawing."""
    glyphs = [[bytes(20 if rand.below(3) == 0 else 245 for _ in range(6)) + b"\xf5\xf5"
               for _ in range(10)] for _ in range(40)]
    blank, rows = bytes([245]) * width, []
    while len(rows) < height:
        if rand.below(4) == 0:
            level, left = 40 + rand.below(180), rand.below(width // 2)
            bar = blank[:left] + bytes([level]) * (width // 3) + blank[left + width // 3:]
            rows += [bar] * (6 + rand.below(20))
        else:
            line = [glyphs[rand.below(40)] for _ in range(width // 8)]
            rows += [b"".join(g[y] for g in line) for y in range(10)]
        rows += [blank] * (2 + rand.below(4))
    return rows[:height]


def tinted(rows, add, times):
    table = bytes(min(255, add + v * times // 16) for v in range(256))
    return [row.translate(table) for row in rows]


def pixels(red, green, blue):
    for planes in zip(red, green, blue):
        row = bytearray(3 * len(planes[0]))
        for i, plane in enumerate(planes):
            row[i::3] = plane
        yield bytes(row)


def write_ppm(path, width, height, rows):
    with open(path, "wb") as f:
        f.write(b"P6\n%d %d\n255\n" % (width, height))
        f.writelines(rows)


def tiled(rand, rows, times):
    """The rows so many times across and down, each piece of another brightness."""
    for _ in range(times):
        tints = [bytes(max(0, v - d) for v in range(256))
                 for d in (rand.below(90) for _ in range(times))]
        for row in rows:
            yield b"".join(row.translate(tint) for tint in tints)


def write_pictures(rand, out, ground, sheet):
    width, height = len(ground[0]), len(ground)
    write_ppm(f"{out}/hills.ppm", width, height,
              pixels(ground, tinted(ground[::-1], 20, 14), tinted(ground, 70, 9)))
    side = len(sheet)
    drawing = list(pixels(sheet, tinted(sheet, 4, 15), tinted(sheet[::-1], 60, 12)))
    write_ppm(f"{out}/drawing.ppm", 9 * side, 9 * side, tiled(rand, drawing, 9))
    write_ppm(f"{out}/drawing-short.ppm", side, side, drawing)


# ---- films ------------------------------------------------------------------

def write_film(path, width, height, frames, luma, interlaced):
    """Frames as functions of their number say, with little colour."""
    head = f"YUV4MPEG2 W{width} H{height} F25:1 I{'t' if interlaced else 'p'} A1:1 C420mpeg2\n"
    with open(path, "wb") as f:
        f.write(head.encode())
        for nr in range(frames):
            rows = luma(nr)
            f.write(b"FRAME\n" + b"".join(rows))
            for shift in (96, 120):
                table = bytes(shift + v // 8 for v in range(256))
                f.writelines(row[::2].translate(table) for row in rows[::2])


def panned(ground, width, height):
    """A camera that pans over the hills, and three squares that fly before them."""
    def frame(nr):
        x, y = nr * 3 % (len(ground[0]) - width), nr * nr // 9 % (len(ground) - height)
        rows = [row[x:x + width] for row in ground[y:y + height]]
        for i in range(3):
            left, top = (40 * i + nr * (4 + i)) % (width - 32), (60 * i + nr * 2) % (height - 32)
            patch = bytes([200 - 60 * i]) * 32
            for k in range(top, top + 32):
                rows[k] = rows[k][:left] + patch + rows[k][left + 32:]
        return rows
    return frame


def scrolled(sheet, width, height):
    """Pages that scroll faster and faster, fade, and are cut to the next; noise every so often."""
    def frame(nr):
        scene, at = divmod(nr, 15)
        lines = [sheet[(scene * 97 + at * at + y) % len(sheet)] for y in range(height)]
        fade = bytes(v * (30 - at) // 30 for v in range(256))
        shift = scene * 40 % 300
        return [(row + row)[shift:shift + width].translate(fade) for row in lines]
    return frame


# ---- logic ------------------------------------------------------------------

def write_pla(path, inputs, outputs, cubes):
    with open(path, "w", encoding="ascii") as f:
        f.write(f".i {inputs}\n.o {outputs}\n")
        f.writelines(f"{a} {b}\n" for a, b in cubes)
        f.write(".e\n")


def arithmetic(bits, what):
    """Each line of a table of sums, products or squares: all inputs are given."""
    for a in range(1 << bits):
        for b in range(1 << bits):
            yield f"{a:0{bits}b}{b:0{bits}b}", f"{what(a, b) & (1 << 2 * bits) - 1:0{2 * bits}b}"


def scattered(rand, inputs, outputs, cubes):
    """Cubes drawn by lot, half of whose inputs do not matter."""
    for _ in range(cubes):
        yield ("".join("01--"[rand.below(4)] for _ in range(inputs)),
               "".join("100"[rand.below(3)] for _ in range(outputs)))


def write_logic(out):
    write_pla(f"{out}/sums.pla", 10, 10, arithmetic(5, lambda a, b: a + b))
    write_pla(f"{out}/products.pla", 8, 8, arithmetic(4, lambda a, b: a * b))
    write_pla(f"{out}/squares.pla", 8, 8, arithmetic(4, lambda a, b: a * a + 3 * b))
    write_pla(f"{out}/scattered.pla", 15, 9, scattered(Rand(3), 15, 9, 120))
    write_pla(f"{out}/scattered-short.pla", 12, 6, scattered(Rand(4), 12, 6, 60))


# ---- games ------------------------------------------------------------------

def write_games(out):
    """Whole games on small boards, for training."""
    with open(f"{out}/small.gtp", "w", encoding="ascii") as f:
        for size, moves in ((9, 60), (11, 40)):
            f.write(f"boardsize {size}\nclear_board\n")
            for nr in range(moves):
                f.write(f"genmove {'black' if nr % 2 == 0 else 'white'}\n")
            f.write("estimate_score\nshowboard\n")
        f.write("quit\n")
    with open(f"{out}/start.gtp", "w", encoding="ascii") as f:
        f.write("boardsize 19\nclear_board\n")
        for nr in range(70):
            f.write(f"genmove {'black' if nr % 2 == 0 else 'white'}\n")
        f.write(f"printsgf {out}/middle.sgf\nquit\n")
    for name, moves in (("large", 6), ("large-short", 1)):
        with open(f"{out}/{name}.gtp", "w", encoding="ascii") as f:
            f.write(f"loadsgf {out}/middle.sgf\n")
            for nr in range(moves):
                f.write(f"genmove {'black' if nr % 2 == 0 else 'white'}\n")
            f.write("showboard\nquit\n")


def main():
    out = os.path.abspath(sys.argv[1])
    rand = Rand(19971005)
    ground, sheet = hills(rand, 768, 512), page(rand, 640, 640)
    write_pictures(rand, out, ground, sheet)
    write_film(f"{out}/pan.y4m", 352, 288, 60, panned(ground, 352, 288), False)
    write_film(f"{out}/scroll.y4m", 720, 576, 45, scrolled(sheet, 720, 576), True)
    write_logic(out)
    write_games(out)


if __name__ == "__main__":
    main()
