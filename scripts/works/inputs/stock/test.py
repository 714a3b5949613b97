# SPDX-License-Identifier: Apache-2.0
# Test work for python: classes, generators, exceptions, json, big integers, set algebra. Argument:
# how much.
import collections
import functools
import heapq
import json
import sys

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10


class Node:
    __slots__ = ("name", "edges")

    def __init__(self, name):
        self.name, self.edges = name, {}

    def __lt__(self, other):
        return self.name < other.name


def graph(n):
    nodes = [Node(i) for i in range(n)]
    for i in range(n):
        for k in (1, 7, 31):
            nodes[i].edges[nodes[(i * k + k) % n]] = (i * k) % 13 + 1
    return nodes


def shortest(nodes):
    best, heap = {nodes[0]: 0}, [(0, nodes[0])]
    while heap:
        d, node = heapq.heappop(heap)
        if d > best[node]:
            continue
        for other, cost in node.edges.items():
            if d + cost < best.get(other, 1 << 30):
                best[other] = d + cost
                heapq.heappush(heap, (d + cost, other))
    return sum(best.values())


def numbers(n):
    for i in range(n):
        try:
            if i % 9 == 4:
                raise KeyError(i)
            yield i
        except KeyError as e:
            yield -e.args[0]


@functools.lru_cache(None)
def ways(n, k):
    return 1 if n == 0 else 0 if n < 0 or k == 0 else ways(n - k, k) + ways(n, k - 1)


total = 0
for r in range(rounds):
    nodes = graph(150 + r % 5)
    total += shortest(nodes)
    total += sum(numbers(500))
    ways.cache_clear()
    total += ways(40, 12)
    data = {"r": r, "list": [{"k": i, "v": [i / 4, None, str(i)]} for i in range(40)]}
    total += len(json.dumps(json.loads(json.dumps(data)), indent=1, sort_keys=True))
    a, b = set(range(r, r + 300, 3)), frozenset(range(0, 400, 5))
    total += len(a & b) + len(a ^ b)
    queue = collections.deque(range(100))
    queue.rotate(r)
    total += queue[0] + 7 ** (60 + r % 9) % 1000003
print(total)
