# SPDX-License-Identifier: Apache-2.0
"""Reads what tests/plugin/contexts.c writes (Documentation/lab/contexts.md).

Trees of real programs have millions of nodes: columns are arrays, and a node
is its number. Node 0 is the parent of first functions.
"""

import random
from array import array

START, SIGNAL, STACK, DIRECT, INDIRECT, JUMP, INTERRUPTED = (
    "start", "signal", "stack", "direct", "indirect", "jump", "interrupted")

RED_ZONE = 128  # Sample.memory begins so far below rsp


class Failure(Exception):
    pass


class Contexts:
    """The tree and the call graph of a run."""

    def __init__(self, path):
        self.path = path
        self.totals, self.objects, self.maps = {}, {}, []
        self.sites, self.functions = {0: (None, 0, 0, START)}, {0: (None, 0, None)}
        self.parent, self.site, self.function = array("I", [0]), array("I", [0]), array("I", [0])
        self.activations, self.tails, self.plt = array("Q", [0]), array("Q", [0]), array("Q", [0])
        self.self_weight, self.total = array("Q", [0]), array("Q", [0])
        self.edges = []
        ended = False
        readers = {"node": self._node, "site": self._site, "function": self._function,
                   "edge": self._edge, "map": self._map}
        with open(path, encoding="utf-8", errors="surrogateescape") as lines:
            head = next(lines, "").rstrip("\n").split(" ", 2)
            if head[:2] != ["contexts", "1"]:
                raise Failure(f"{path}: not the contexts of a run")
            self.program = head[2]
            for line in lines:
                word = line.split()
                if word[0] in readers:
                    readers[word[0]](word)
                elif word[0] == "total":
                    self.totals[word[1]] = int(word[2])
                elif word[0] == "object":
                    self.objects[int(word[1])] = line.rstrip("\n").split(" ", 2)[2]
                elif word[0] == "end":
                    ended = True
                else:
                    raise Failure(f"{path}: cannot read: {line.rstrip()}")
        if not ended:
            raise Failure(f"{path}: ends too early")

    def _node(self, word):
        if int(word[1]) != len(self.parent) or int(word[2]) >= len(self.parent):
            raise Failure(f"{self.path}: node {word[1]} is out of order")
        for column, value in zip((self.parent, self.site, self.function, self.activations,
                                  self.tails, self.plt, self.self_weight, self.total), word[2:]):
            column.append(int(value))

    def _site(self, word):
        self.sites[int(word[1])] = (int(word[2]), int(word[3], 16), int(word[4]), word[5])

    def _function(self, word):
        whole = int(word[4]) if len(word) > 4 else None
        self.functions[int(word[1])] = (int(word[2]), int(word[3], 16), whole)

    def _edge(self, word):
        self.edges.append((int(word[1]), int(word[2]), int(word[3]), tuple(word[4:])))

    def _map(self, word):
        self.maps.append((int(word[1], 16), int(word[2], 16), int(word[3], 16), int(word[4])))

    def __len__(self):
        return len(self.parent)

    def whole(self, function):
        """The function that a part of a function belongs to."""
        return self.functions[function][2] or function

    def site_key(self, site):
        """A call site, the same in other runs."""
        obj, vaddr, _, kind = self.sites[site]
        if kind == SIGNAL or site == 0:
            return (kind,)
        return (self.objects[obj], vaddr)

    def function_key(self, function):
        obj, vaddr, _ = self.functions[function]
        return (self.objects.get(obj), vaddr)

    def graph(self):
        """{(site, function): calls} with keys that hold for other runs."""
        out = {}
        for site, function, count, _ in self.edges:
            key = (self.site_key(site), self.function_key(function))
            out[key] = out.get(key, 0) + count
        return out

    def names(self, by_site=False):
        """For each node a name of its path that is the same in other runs: a number, the same
        for equal paths. @by_site: a path consists of call sites only."""
        sites = {s: hash(self.site_key(s)) for s in self.sites}
        functions = {f: hash(self.function_key(f)) for f in self.functions}
        out = array("q", [0])
        for i in range(1, len(self.parent)):
            site = self.site[i]
            callee = 0 if by_site and site else functions[self.function[i]]
            out.append(hash((out[self.parent[i]], sites[site], callee)))
        return out

    def weights(self, column="self", by_site=False):
        """{path: weight}; @column: self (instructions) or calls (activations)."""
        values = self.self_weight if column == "self" else self.activations
        out = {}
        for name, value in zip(self.names(by_site), values):
            if value:
                out[name] = out.get(name, 0) + value
        return out


class Sample:
    __slots__ = ("thread", "count", "object", "vaddr", "serial", "registers", "memory")

    def __init__(self, word):
        self.thread, self.count, self.object = int(word[1]), int(word[2]), int(word[3])
        self.vaddr, self.serial = int(word[4], 16), int(word[5])
        self.registers = [int(w, 16) for w in word[6:22]] or None
        self.memory = bytes.fromhex(word[22]) if len(word) > 22 else b""


class Activation:
    __slots__ = ("serial", "call", "parent", "site", "function", "slot", "flags")

    def __init__(self, word):
        self.serial, self.call, self.parent = int(word[1]), int(word[2]), int(word[3])
        self.site, self.function, self.slot = int(word[4]), int(word[5]), int(word[6], 16)
        self.flags = word[7:]


def samples(path):
    """Yields (sample, activations), activations from the outermost to the innermost."""
    known = {}
    with open(path, encoding="ascii") as lines:
        for line in lines:
            word = line.split()
            if word[0] == "a":
                known[int(word[1])] = Activation(word)
            elif word[0] == "s":
                sample, stack = Sample(word), []
                serial = sample.serial
                while serial:
                    stack.append(known[serial])
                    serial = stack[-1].parent
                yield sample, stack[::-1]
            else:
                raise Failure(f"{path}: cannot read: {line.rstrip()}")


def stacks(path):
    """{line: (thread, serial numbers from the outermost activation to the innermost)}"""
    parents, out = {}, {}
    with open(path, encoding="ascii") as lines:
        for number, line in enumerate(lines, 1):
            if line.startswith("a "):
                word = line.split(" ", 4)
                parents[int(word[1])] = int(word[3])
            else:
                word = line.split(" ", 6)
                serial, serials = int(word[5]), []
                while serial:
                    serials.append(serial)
                    serial = parents[serial]
                out[number] = (int(word[1]), serials[::-1])
    return out


def overlap(a, b):
    """100 * sum of the smaller shares of two {key: weight}."""
    sum_a, sum_b = sum(a.values()), sum(b.values())
    if not sum_a or not sum_b:
        return 0.0
    return 100.0 * sum(min(w / sum_a, b[k] / sum_b) for k, w in a.items() if k in b)


def ideal(weights, nr, seeds):
    """Mean overlap with @weights of samplers that draw @nr samples from them."""
    keys, shares, sums = list(weights), list(weights.values()), []
    if not nr or not keys:
        return 0.0
    for seed in range(seeds):
        drawn = {}
        for key in random.Random(seed).choices(keys, shares, k=nr):
            drawn[key] = drawn.get(key, 0) + 1
        sums.append(overlap(drawn, weights))
    return sum(sums) / len(sums)


def correlation(a, b):
    """Pearson's correlation of two {key: weight} over the keys of either."""
    keys = a.keys() | b.keys()
    if len(keys) < 2:
        return 1.0
    mean_a, mean_b = sum(a.values()) / len(keys), sum(b.values()) / len(keys)
    cov = var_a = var_b = 0.0
    for k in keys:
        x, y = a.get(k, 0) - mean_a, b.get(k, 0) - mean_b
        cov, var_a, var_b = cov + x * y, var_a + x * x, var_b + y * y
    return cov / (var_a * var_b) ** 0.5 if var_a and var_b else 1.0


def sampled_weights(ctx, path):
    """{path in the tree: samples}, named as Contexts.weights() does."""
    sites = {s: hash(ctx.site_key(s)) for s in ctx.sites}
    functions = {f: hash(ctx.function_key(f)) for f in ctx.functions}
    out = {}
    for _, stack in samples(path):
        name = 0
        for a in stack:
            kind = ctx.sites[a.site][3]
            site = hash((SIGNAL,)) if kind == INTERRUPTED else sites[a.site]
            name = hash((name, site, functions[ctx.whole(a.function)]))
        out[name] = out.get(name, 0) + 1
    return out
