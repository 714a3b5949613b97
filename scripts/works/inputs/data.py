# SPDX-License-Identifier: Apache-2.0
"""Writes the data files of scripts/works/workloads: text and binary, for training and
for test, from a generator of its own so that no Python version changes them."""
import os
import struct
import sys


class Rand:
    """xorshift64*: the same numbers everywhere."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        x = self.state
        x ^= x >> 12
        x ^= (x << 25) & 0xFFFFFFFFFFFFFFFF
        x ^= x >> 27
        self.state = x
        return ((x * 0x2545F4914F6CDD1D) >> 32 & 0xFFFFFFFF) % limit


SYLLABLES = ("ba be bi bo da de di do fa fi ga go ka ki la le li lo ma me mi mo "
             "na ne ni no pa pe ra re ri ro sa se si so ta te ti to va ve").split()


def vocabulary(rand, size):
    return ["".join(SYLLABLES[rand.below(len(SYLLABLES))] for _ in range(1 + rand.below(4)))
            for _ in range(size)]


def prose(rand, words, size_bytes):
    """Words by a rough Zipf law, in sentences and lines."""
    out, column, total = [], 0, 0
    while total < size_bytes:
        word = words[rand.below(1 + rand.below(1 + rand.below(len(words))))]
        if rand.below(12) == 0:
            word = word.capitalize()
        end = ". " if rand.below(11) == 0 else " "
        column += len(word) + len(end)
        if column > 72:
            end, column = "\n", 0
        out.append(word + end)
        total += len(word) + len(end)
    return "".join(out).encode()


def binary(rand, size_bytes):
    """Records as in a table of structures, runs, and noise, in turn."""
    out, counter = bytearray(), 0
    while len(out) < size_bytes:
        kind = rand.below(3)
        if kind == 0:
            for _ in range(200):
                counter += rand.below(9)
                out += struct.pack("<IHHd", counter, rand.below(16), 0, counter / 7)
        elif kind == 1:
            out += bytes([rand.below(256)]) * (300 + rand.below(4000))
        else:
            out += bytes(rand.below(256) for _ in range(1500))
    return bytes(out[:size_bytes])


def lines_of_text(rand, words, count):
    return "".join("%s %s %s%d\n" % (words[rand.below(len(words))], words[rand.below(len(words))],
                                     words[rand.below(len(words))], rand.below(100))
                   for _ in range(count)).encode()


def lines_of_numbers(rand, count):
    return "".join("%d:%s%d.%03d:id%05d:%dK\n" % (rand.below(5000),
                                                  "-" if rand.below(4) == 0 else "",
                                                  rand.below(100000), rand.below(1000),
                                                  rand.below(40000), rand.below(3000))
                   for _ in range(count)).encode()


def accounts(rand, words, count):
    """Fields of several kinds: name, amount, size with a unit, date, remark."""
    return "".join("%s;%s%d.%02d;%d%s;20%02d-%02d-%02d;%s %d\n" % (
        words[rand.below(len(words))], "+" if rand.below(9) == 0 else "",
        rand.below(1 << 1 + rand.below(20)), rand.below(100), 1 + rand.below(999),
        "BKMG"[rand.below(4)], rand.below(30), 1 + rand.below(12), 1 + rand.below(28),
        words[rand.below(len(words))], rand.below(1000))
        for _ in range(count)).encode()


def write(directory, name, data):
    path = os.path.join(directory, name)
    with open(path, "wb") as file:
        file.write(data)
    os.utime(path, (1672531200, 1672531200))


def main():
    out = sys.argv[1]
    words = vocabulary(Rand(1), 4000)
    write(out, "text-train.txt", prose(Rand(2), words, 6_000_000))
    write(out, "words-train.txt", lines_of_text(Rand(3), words, 800_000))
    write(out, "accounts-train.txt", accounts(Rand(10), words, 300_000))
    write(out, "mixed-train.bin", binary(Rand(4), 1_000_000))
    write(out, "binary-test.bin", binary(Rand(5), 5_000_000))
    write(out, "text-test.csv", lines_of_numbers(Rand(6), 80_000))
    write(out, "binary-short.bin", binary(Rand(7), 700_000))
    write(out, "numbers-test.csv", lines_of_numbers(Rand(8), 900_000))
    write(out, "numbers-short.csv", lines_of_numbers(Rand(9), 80_000))


if __name__ == "__main__":
    main()
