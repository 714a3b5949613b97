# SPDX-License-Identifier: Apache-2.0
"""The nine programs of the Morph paper's Figure 3, or the nearest that Debian has, and their work.

As in stockworks: train is commands for sh, test is one command on inputs of another kind, and short
is the same kind of test for the emulator. {} is the program, {in} the directory that prepare()
fills, {inputs} the output of scripts/works/inputs/generate.
"""

import os
import subprocess
import sys
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))

from benchlib import ROOT  # noqa: E402
from stockworks import GZIP, INPUTS, SCRIPTS, Work, run, times  # noqa: E402

LISP = os.path.join(ROOT, "scripts/works/inputs/figure3")


class Figure3Work(Work):
    """The paper's program, descriptions of the work, and a filter that makes outputs comparable."""

    def __init__(self, name, paper, trained, tested, *args, clean="cat", **kw):
        super().__init__(name, *args, **kw)
        self.paper, self.trained, self.tested, self.clean = paper, trained, tested, clean


# One thread: plain counters are exact then, and the CPU time varies little.
SORT = ("{} --parallel=1 {inputs}/words-train.txt >s && "
        "{} --parallel=1 -k2,2 -u {inputs}/words-train.txt >s && "
        "{} --parallel=1 -t';' -k2,2n {inputs}/accounts-train.txt >s && "
        "{} --parallel=1 -t';' -k4.6,4.7n -k5 -s {inputs}/accounts-train.txt >s")
SORT_TEST = "{} --parallel=1 -t : -k4,4h -k2,2nr -k3.4,3 "
GO = "{} --mode gtp --seed %d --level %d --gtp-input {in}/%s.gtp"
JPEG = " && ".join([f"cjpeg {how} {{in}}/hills.ppm >{name}.jpg" for name, how in (
    ("a", "-quality 75"), ("b", "-quality 92 -progressive"), ("c", "-sample 1x1 -optimize"),
    ("d", "-grayscale"))] + [f"djpeg {how} >x" for how in (
        "a.jpg", "b.jpg", "c.jpg", "d.jpg", "-scale 1/2 b.jpg", "-colors 64 -gif c.jpg")] +
    ["jpegtran -rotate 90 -progressive a.jpg >y.jpg", "djpeg y.jpg >x"])
ABC = ("{} -q 'read_pla {in}/sums.pla; collapse; sop; fx; strash; dc2; &get; &exorcism e' >x && "
       "{} -q 'read_pla {in}/products.pla; collapse; sop; fx; strash; resub; mfs; &get; "
       "&exorcism e' >x && "
       "{} -q 'gen -a -N 48 a.blif; read_blif a.blif; strash; balance; rewrite; refactor; "
       "collapse; sop; fx; strash; if -K 6' >x && "
       "{} -q 'read_pla {in}/squares.pla; collapse; bidec; strash; &get; &exorcism e' >x")
ABC_TEST = ("{} -q 'read_pla {in}/%s.pla; collapse; sop; fx; strash; dc2; &get; "
            "&exorcism /dev/stdout'")
SQL = "sqlite3 :memory: 'create table size(value); insert into size values(%d)' '.read " + \
    SCRIPTS + "/test.sql'"

WORKS = (
    Figure3Work("berkeley-abc", "espresso", "tables of sums, products and squares, an adder",
                "cubes drawn by lot, minimised to sums and exclusive sums of products",
                times(30, ABC), ABC_TEST % "scattered", ABC_TEST % "scattered-short",
                clean="grep -v '^#'"),
    Figure3Work("gnugo", "go", "whole games on boards of 9 and 11",
                "moves in the middle of a game on a board of 19, at a higher level",
                " && ".join(GO % (seed, 2, "small") + " >x" for seed in (1, 2, 3, 4)),
                GO % (7, 8, "large"), GO % (7, 3, "large-short"),
                path=lambda: "/usr/games/gnugo"),
    Figure3Work("gzip", "gzip", "prose and some records, compressed and uncompressed",
                "tables of numbers, records between runs and noise: compressed",
                times(8, GZIP),
                "{} -nc {inputs}/binary-test.bin {inputs}/numbers-test.csv",
                "{} -nc {in}/short.bin {in}/short.csv"),
    Figure3Work("libjpeg.so.62", "ijpeg",
                "a landscape: coded, decoded, turned, in seven ways (cjpeg, djpeg, jpegtran)",
                "drawings, coded progressively: decoded (djpeg)",
                times(120, JPEG), "djpeg {in}/drawing.jpg", "djpeg {in}/drawing-short.jpg",
                driver="djpeg"),
    Figure3Work("newlisp", "lisp", "strings, algebra on lists, sorting, dictionaries, arrays",
                "the queens problem on lists",
                "{} -n {in}/train-size.lsp " + LISP + "/train.lsp >x",
                "{} -n {in}/test-size.lsp " + LISP + "/test.lsp",
                "{} -n {in}/short-size.lsp " + LISP + "/test.lsp"),
    Figure3Work("libmpeg2.so.0", "mpeg_play", "a landscape, panned: MPEG-1, MPEG-2 (mpeg2dec)",
                "pages scrolled, faded and cut: MPEG-2, interlaced (mpeg2dec)",
                times(200, "mpeg2dec -o null {in}/pan.m1v >x && mpeg2dec -o null {in}/pan.m2v >x && "
                      "mpeg2dec -o pgmpipe {in}/pan-low.m1v >x"),
                "mpeg2dec -o pgmpipe {in}/scroll.m2v", "mpeg2dec -o pgmpipe {in}/scroll-short.m2v",
                driver="mpeg2dec"),
    Figure3Work("perl", "perl", "splitting, hashes, substitutions, sorting by keys",
                "objects, closures, a parser, packing",
                "{} " + SCRIPTS + "/train.pl 300", "{} " + SCRIPTS + "/test.pl 250",
                "{} " + SCRIPTS + "/test.pl 20"),
    Figure3Work("sort", "sort", "words, and accounts by number, month and name",
                "a table by size, number and part of a word",
                times(4, SORT), SORT_TEST + "{inputs}/numbers-test.csv {inputs}/text-test.csv",
                SORT_TEST + "{in}/short.csv"),
    Figure3Work("libsqlite3.so.0", "vortex", "inserts, indices, joins, updates (sqlite3)",
                "text, JSON, windows, triggers, recursion (sqlite3)",
                times(12, "sqlite3 :memory: '.read " + SCRIPTS + "/train.sql' >q"),
                SQL % 60000, SQL % 4000, driver="sqlite3"),
)


def code_film(directory, name, source, *options):
    with open(f"{directory}/{source}", "rb") as film:
        run(["mpeg2enc", "-v", "0", *options, "-o", f"{directory}/{name}"], directory, stdin=film,
            stdout=subprocess.DEVNULL)


def repeat(source, path, often):
    with open(source, "rb") as f:
        text = f.read()
    with open(path, "wb") as f:
        f.write(text * often)


def prepare(directory):
    """Write all inputs, once."""
    done = os.path.join(directory, ".complete")
    # The inputs of the other benchmarks may be missing in this build directory.
    run([os.path.join(ROOT, "scripts/works/inputs/generate"), INPUTS], ROOT, stdout=subprocess.DEVNULL)
    if os.path.exists(done):
        return
    os.makedirs(directory, exist_ok=True)
    run(["python3", os.path.join(LISP, "data.py"), directory], ROOT, stdout=subprocess.DEVNULL)
    run(["/usr/games/gnugo", "--mode", "gtp", "--seed", "5", "--level", "1", "--gtp-input",
         f"{directory}/start.gtp"], directory, stdout=subprocess.DEVNULL)
    for name in ("drawing", "drawing-short"):
        run(["cjpeg", "-quality", "85", "-progressive", "-outfile", f"{name}.jpg", f"{name}.ppm"],
            directory)
    code_film(directory, "pan.m1v", "pan.y4m", "-f", "0", "-b", "1500")
    code_film(directory, "pan-low.m1v", "pan.y4m", "-f", "0", "-b", "500")
    code_film(directory, "pan.m2v", "pan.y4m", "-f", "3", "-b", "4000")
    code_film(directory, "scroll-short.m2v", "scroll.y4m", "-f", "3", "-I", "1", "-b", "9000",
              "-q", "6")
    repeat(f"{directory}/scroll-short.m2v", f"{directory}/scroll.m2v", 6)
    for name in ("drawing.ppm", "pan.y4m", "scroll.y4m"):
        os.unlink(os.path.join(directory, name))
    with open(f"{INPUTS}/numbers-short.csv", "rb") as f, open(f"{directory}/short.csv", "wb") as out:
        out.writelines(line for _, line in zip(range(12000), f))
    with open(f"{INPUTS}/binary-short.bin", "rb") as f, open(f"{directory}/short.bin", "wb") as out:
        out.write(f.read(1 << 19))
    for name, what, size in (("train", "rounds", 400), ("test", "size", 10), ("short", "size", 8)):
        with open(f"{directory}/{name}-size.lsp", "w", encoding="ascii") as f:
            f.write(f"(set '{what} {size})\n")
    with open(done, "w", encoding="ascii"):
        pass
