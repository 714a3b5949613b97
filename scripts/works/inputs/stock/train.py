# SPDX-License-Identifier: Apache-2.0
# Training work for python: loops, dictionaries, regular expressions, strings. Argument: how much.
import re
import sys

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10


def sieve(n):
    marks = bytearray([1]) * (n + 1)
    for i in range(2, int(n ** 0.5) + 1):
        if marks[i]:
            for j in range(i * i, n + 1, i):
                marks[j] = 0
    return sum(marks) - 2


def count(text):
    words = {}
    for word in re.findall(r"[a-z]+|\d+", text):
        words[word] = words.get(word, 0) + 1
    return sorted(words.items(), key=lambda item: (-item[1], item[0]))[:5]


x, lines = 4711, []
for i in range(2000):
    x = (x * 69069 + 12345) % 2 ** 31
    lines.append(f"{x} word{x % 977} {'the quick brown fox'[x % 9:x % 9 + 6]};{x / 7:.3f}")
text = "\n".join(lines)
for r in range(rounds):
    primes = sieve(4000 + r)
    top = count(text)
    matrix = [[(i * j + r) % 17 for j in range(20)] for i in range(20)]
    product = [[sum(a * b for a, b in zip(row, col)) for col in zip(*matrix)] for row in matrix]
    text = text[1:] + text[0]
print(primes, top, sum(map(sum, product)), text.count("word9"))
