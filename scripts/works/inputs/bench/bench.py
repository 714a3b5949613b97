# SPDX-License-Identifier: Apache-2.0
"""Writes what only the benchmarks' programs read: C sources for a compiler and
documents for a formatter, for training and for test, of different kinds."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.dont_write_bytecode = True
from data import Rand, vocabulary, write  # noqa: E402


# ---- C --------------------------------------------------------------------

HEAD = """#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define N(x) PASTE(P, x)
"""


def integer_expression(rand, depth, names):
    """Of int, without division by what may be zero, without overflow that matters."""
    kind = rand.below(9) if depth else rand.below(2)
    if kind == 0:
        return str(rand.below(1000))
    if kind == 1:
        return names[rand.below(len(names))]
    left = integer_expression(rand, depth - 1, names)
    right = integer_expression(rand, depth - 1, names)
    if kind == 2:
        return f"({left} / ({right} | 1))" if rand.below(2) else f"({left} >> {rand.below(8)})"
    if kind == 3:
        return f"({left} {'< > <= >= == !='.split()[rand.below(6)]} {right})"
    if kind == 4:
        return f"({left} ? {right} : {names[rand.below(len(names))]})"
    if kind == 5:
        return f"({'~-!'[rand.below(3)]}{left})"
    return f"({left} {'+-*&|^'[rand.below(6)]} {right})"


def train_function(rand, i):
    """Integers: loops, switches, arrays, tables, calls."""
    names = ["a", "b", "c", "i"]
    out = [f"static unsigned N(f{i})(unsigned a, unsigned b)", "{", "\tunsigned c = 1, i;",
           f"\tstatic const unsigned char table[] = {{{', '.join(str(rand.below(256)) for _ in range(8))}}};"]
    for _ in range(2 + rand.below(4)):
        kind = rand.below(4)
        e = [integer_expression(rand, 2, names) for _ in range(4)]
        if kind == 0:
            out += [f"\tfor (i = 0; i < {2 + rand.below(5)}; i++) {{", f"\t\tc += {e[0]};",
                    f"\t\tif ({e[1]})", "\t\t\tcontinue;", f"\t\ta ^= table[(c + i) & 7] + {e[2]};", "\t}"]
        elif kind == 1:
            out += [f"\ti = {e[0]};", "\tswitch (i % 7) {"]
            for case in range(3 + rand.below(4)):
                out += [f"\tcase {case}:", f"\t\tc -= {integer_expression(rand, 1, names)};"]
                out += ["\t\tbreak;"] if rand.below(3) else []
            out += ["\tdefault:", f"\t\tb = {e[1]};", "\t}"]
        elif kind == 2 and i:
            out += [f"\ti = b & 15;", f"\tif (i < 3 && !({e[0]} & 63))",
                    f"\t\tc += N(f{max(0, i - 1 - rand.below(9))})({e[1]}, {e[2]});"]
        else:
            out += [f"\ti = a % {3 + rand.below(9)};", "\tdo {", f"\t\tc = c * 33 + {e[3]};",
                    "\t\tb >>= 1;", "\t} while (i-- > 1);"]
    return "\n".join(out + ["\treturn a + b + c;", "}", "", ""])


def test_function(rand, i, words):
    """Structures, pointers, strings, doubles, macros, unions, gotos."""
    tag, field = words[rand.below(len(words))], [words[rand.below(len(words))] for _ in range(3)]
    out = [f"/* {' '.join(words[rand.below(len(words))] for _ in range(12))} */",
           f"struct N({tag}_{i}) {{", f"\tdouble {field[0]}_x;", f"\tchar {field[1]}_y[{8 + rand.below(30)}];",
           f"\tunion {{ long {field[2]}_z; short parts[4]; }} u;", f"\tstruct N({tag}_{i}) *next;", "};",
           f"#define LIMIT_{i} {1 + rand.below(6)}",
           f"#define MIX_{i}(p, q) ((p)->u.{field[2]}_z * (q) + sizeof(struct N({tag}_{i})) * LIMIT_{i})",
           f"static double N(g{i})(const char *text, double x)", "{",
           f"\tstruct N({tag}_{i}) first = {{x, \"{field[0]}\", {{{rand.below(9999)}L}}, 0}}, second, *p = &first;",
           "\tint n = 0;", "\tsecond = first;", "\tsecond.next = &first;", "\tp = &second;"]
    for label in range(1 + rand.below(4)):
        kind = rand.below(4)
        if kind == 0:
            out += ["\twhile (text[n] && n < LIMIT_%d) {" % i,
                    f"\t\tp->{field[0]}_x += text[n++] * {rand.below(100)}.{rand.below(100)}e-2;", "\t}"]
        elif kind == 1:
            out += [f"#if {rand.below(3)} > 0 && defined(LIMIT_{i})",
                    f"\tp->u.{field[2]}_z = MIX_{i}(&first, n + {rand.below(50)});", "#else",
                    f"\tp->u.parts[{rand.below(4)}] ^= 0x{rand.below(4096):x};", "#endif"]
        elif kind == 2:
            out += [f"\tif (p->next && p->{field[0]}_x > {rand.below(100)}.5f)", f"\t\tgoto again_{label};",
                    f"\tp->{field[0]}_x = -p->{field[0]}_x / ({rand.below(7)} + 1.25);", f"again_{label}:",
                    f"\tn += (int)p->{field[1]}_y[1] << {rand.below(4)};"]
        elif i:
            out += [f"\tif (n > {90 + rand.below(30)} && text[0] == 'k')",
                    f"\t\tx += N(g{max(0, i - 1 - rand.below(9))})(\"{words[rand.below(len(words))]}\\n\", x / 2);"]
    return "\n".join(out + [f"\treturn p->{field[0]}_x + (unsigned short)(p->u.{field[2]}_z + n);", "}", "", ""])


def c_source(function, count):
    return (HEAD + "".join(function(i) for i in range(count))).encode()


def c_driver(path, copies, call, count, kind, form):
    """A program that includes the source so many times, under other names."""
    out = ["int printf(const char *, ...);"]
    for copy in range(copies):
        out += ["#undef P", f"#define P m{copy}_", f'#include "{path}"']
    out += ["int main(void)", "{", f"\t{kind} sum = 0;"]
    for copy in range(copies):
        out += [f"\tsum += m{copy}_{call % i};" for i in range(copy % 5, count, 97)]
    return "\n".join(out + [f'\tprintf("{form}\\n", sum);', "\treturn 0;", "}", ""]).encode()


# ---- troff ----------------------------------------------------------------

def sentence(rand, words):
    text = " ".join(words[rand.below(1 + rand.below(len(words)))] for _ in range(5 + rand.below(14)))
    return text.capitalize() + ".\n"


def manual_page(rand, words, title):
    """A page for the man macros, as programs have."""
    out = [f'.TH {title.upper()} 1 "1 January 2023" "bench" "User Commands"\n', ".SH NAME\n",
           f"{title} \\- {sentence(rand, words)}", ".SH SYNOPSIS\n", f".B {title}\n"]
    out += [f".RI [ {w} ]\n" for w in words[:4]]
    for section in ("DESCRIPTION", "OPTIONS", "EXAMPLES", "FILES"):
        out.append(f".SH {section}\n")
        for _ in range(3 + rand.below(5)):
            kind = rand.below(5)
            if kind == 0:
                out += [".PP\n"] + [sentence(rand, words) for _ in range(4)]
            elif kind == 1:
                out += [".TP\n", f".BR \\-\\-{words[rand.below(len(words))]} =\\fIfile\\fR\n",
                        sentence(rand, words), sentence(rand, words)]
            elif kind == 2:
                out += [".RS 4\n", ".nf\n"] + [f"  {w} \\(bu \\\\{w}\n" for w in words[5:9]] + [".fi\n", ".RE\n"]
            elif kind == 3:
                out += [".IP \\(bu 3\n", f".I {words[rand.below(len(words))]}\n", sentence(rand, words)]
            else:
                out += [".SS " + sentence(rand, words), f".B {words[rand.below(len(words))]}\n",
                        sentence(rand, words).replace(" ", " \\fB", 1).replace(" ", "\\fP ", 1)]
    return "".join(out)


BOOK_MACROS = r"""
.\" A page layout of its own: running title, two columns, notes, numbered headings.
.nr chapter 0 1
.nr note 0 1
.nr column 0
.de header
.ev 2
'sp 2
.tl 'The \\*[title]'\\n%'Chapter \\n[chapter]'
'sp 2
.ev
.mk top
.nr column 0
.ns
..
.de footer
.ie \\n[column]=0 \{\
.  nr column 1
.  po +3.2i
.  rt \\n[top]u
.\}
.el \{\
.  po -3.2i
.  if \\n[pending] .notes.out
'bp
.\}
..
.de notes.out
.ev 1
.nf
.held
.fi
.ev
.rm held
.nr pending 0
..
.de chapter
.br
.nr section 0 1
.ds title \\$*
.sp 1v
.ps 14
.ft B
.ce 1
\\n+[chapter]. \\*[title]
.ft P
.ps 10
.sp 0.5v
..
.de section
.sp 0.7v
.ne 3
.ft I
\\n[chapter].\\n+[section]\h'0.6m'\\$1
.ft P
.br
..
.de note
.da held
.ev 1
.ll 6i
\\n+[note]\h'1m'\\$*
.br
.ev
.da
.nr pending 1
\\s-2\\u\\n[note]\\d\\s0
..
.de boxed
.nr width \w'\\$1'
\Z'\v'0.25m'\D'l \\n[width]u 0'\D'l 0 -1m'\D'l -\\n[width]u 0'\D'l 0 1m''\\$1
..
.de list
.nr i 0 1
.in +2m
.while \\n[.$] \{\
.  ti -1.2m
.  ie (\\n+[i] % 2) \(bu\h'0.5m'\\$1
.  el \(em\h'0.2m'\fI\\$1\fP
.  br
.  shift
.\}
.in -2m
..
.wh 0 header
.wh -1i footer
.ll 2.9i
.hy 4
.ad b
.ps 10
.vs 12
.fam T
"""


def book(rand, words, size_bytes):
    """A book with a layout of its own, none of the standard macros."""
    out, total, paragraph = [BOOK_MACROS], 0, 0
    while total < size_bytes:
        kind = rand.below(24)
        if kind == 0:
            text = ".chapter " + sentence(rand, words)
        elif kind < 4:
            text = f'.section "{sentence(rand, words).strip()}"\n'
        elif kind == 4:
            text = ".note " + sentence(rand, words)
        elif kind == 5:
            text = '.list ' + " ".join(f'"{words[rand.below(len(words))]}"' for _ in range(4)) + "\n"
        elif kind == 6:
            text = f'.boxed {words[rand.below(len(words))]}\n'
        elif kind == 7:
            tabs = [words[rand.below(len(words))] for _ in range(3)]
            text = ".nf\n.ta 0.8i 1.6iR 2.4i\n" + "".join(f"{t}\t{rand.below(9999)}\t\\fB{t}\\fP\n" for t in tabs) + ".fi\n"
        elif kind < 11:
            text = sentence(rand, words).replace(" ", " \\(lq", 1).replace(".", "\\(rq.").replace("e ", "\\('e ")
        elif kind < 13:
            text = ".br\n.ti +1m\n" + sentence(rand, words)
        elif kind == 13:
            text = f".if \\n[chapter]>{rand.below(5)} .ie \\w'{words[3]}'>40 \\{{\\\n{sentence(rand, words)}.\\}}\n.el {sentence(rand, words)}"
        else:
            text = "".join(sentence(rand, words) for _ in range(2 + rand.below(3)))
        out.append(text)
        total += len(text)
    return "".join(out).encode()


def main():
    out = os.path.join(sys.argv[1], "bench")
    os.makedirs(out, exist_ok=True)
    words = vocabulary(Rand(21), 3000)
    short = [w for w in vocabulary(Rand(22), 900) if w not in ("do", "if")]
    rand = Rand(23)
    write(out, "train-body.c", c_source(lambda i: train_function(rand, i), 3000))
    for name, copies in (("train", 8), ("exact", 1)):
        write(out, f"{name}.c", c_driver("train-body.c", copies, "f%d(3, 5)", 3000, "unsigned", "%u"))
    rand = Rand(24)
    write(out, "test-body.c", c_source(lambda i: test_function(rand, i, short), 2500))
    for name, copies in (("test", 20), ("short", 2)):
        write(out, f"{name}.c", c_driver("test-body.c", copies, 'g%d("some text", 0.5)', 2500, "double", "%.9g"))
    rand = Rand(25)
    pages = [manual_page(rand, words[(i * 37) % 2000:], f"tool{i}") for i in range(400)]
    write(out, "train.man", "".join(pages).encode())
    write(out, "exact.man", "".join(pages[:40]).encode())
    words = vocabulary(Rand(26), 5000)
    write(out, "test.roff", book(Rand(27), words, 3_000_000))
    write(out, "short.roff", book(Rand(28), words, 150_000))


if __name__ == "__main__":
    main()
