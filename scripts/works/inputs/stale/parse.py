# SPDX-License-Identifier: Apache-2.0
"""Parse an XML file again and again with expat. Usage: parse.py FILE ROUNDS"""
import sys
from xml.parsers import expat

seen = [0, 0, 0]


def start(name, attributes):
    seen[0] += 1
    seen[1] += len(attributes)


def data(text):
    seen[2] += len(text)


for _ in range(int(sys.argv[2])):
    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.CharacterDataHandler = data
    with open(sys.argv[1], "rb") as f:
        parser.ParseFile(f)
print(*seen)
