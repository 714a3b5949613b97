# SPDX-License-Identifier: Apache-2.0
"""Compares the calling context tree that morphd makes of a run's samples with the exact tree.

A context is named by the return addresses of its calls, outermost first, and by the function that
ran, as in morphd's tree: the same names are given to the nodes of both trees.
"""

import os
import subprocess
from array import array

import contextfile as cf
import contextrun
from contextfile import Failure

CALL, AT, FUNCTION = 0, 1, 2  # enum mp_context_kind


class Walked:
    """A sample as morphd saw it: its line in DIR/samples, callers, and how many looked old."""
    __slots__ = ("line", "thread", "count", "callers", "aged", "old", "stop")

    def __init__(self, word):
        self.line, self.thread, self.count = int(word[1]), int(word[2]), int(word[3])
        self.callers, self.aged, self.old = int(word[4]), word[5] == "1", int(word[6])
        self.stop = word[7]


class Node:
    __slots__ = ("parent", "kind", "object", "vaddr", "self_nr", "total", "new")

    def __init__(self, word):
        self.parent, self.kind = int(word[2]), int(word[3])
        self.object = None if word[4] == "-" else int(word[4])
        self.vaddr, self.self_nr = int(word[5], 16), int(word[6])
        self.total, self.new = int(word[7]), int(word[8])


def lines(directory, options):
    """The words of each line that tests/tools/contexts_tree.c prints about a run."""
    tool = os.path.join(contextrun.BUILD, "tools", "contexts-tree")
    if not os.path.exists(tool):
        raise Failure(f"{tool}: not there: `make tools` builds it")
    run = subprocess.run([tool, *options, directory], capture_output=True, text=True, check=False)
    if run.returncode or not run.stdout:
        raise Failure(f"{directory}: {run.stderr.strip() or 'no tree'}")
    return (line.split(" ") for line in run.stdout.splitlines())


def made(directory, options=()):
    """morphd's tree of a run: ([Walked], {number: Node})."""
    walked, nodes, trees = [], {}, 0
    for word in lines(directory, options):
        if word[0] == "sample":
            walked.append(Walked(word))
        elif word[0] == "node":
            nodes[int(word[1])] = Node(word)
        else:
            trees += word[0] == "tree"
    if trees != 1:
        raise Failure(f"{directory}: {trees} trees of one program")
    return walked, nodes


def site_names(ctx):
    """{site: hash of its return address, as in morphd's tree}"""
    return {s: hash((CALL, obj, vaddr + length)) for s, (obj, vaddr, length, _)
            in ctx.sites.items()}


def exact_names(ctx):
    """The name of each node of the exact tree as a parent, and as a context that ran."""
    sites = site_names(ctx)
    functions = {f: hash((FUNCTION, obj, vaddr)) for f, (obj, vaddr, _) in ctx.functions.items()}
    above, ran = array("q", [0]), array("q", [0])
    for i in range(1, len(ctx)):
        site = ctx.site[i]
        # a first function has no caller
        name = hash((above[ctx.parent[i]], sites[site])) if site else above[ctx.parent[i]]
        above.append(name)
        ran.append(hash((name, functions[ctx.function[i]])))
    return above, ran


def exact_weights(ctx):
    """{context: instructions}"""
    out = {}
    for name, weight in zip(exact_names(ctx)[1], ctx.self_weight):
        if weight:
            out[name] = out.get(name, 0) + weight
    return out


def product_weights(nodes):
    """{context: samples}"""
    names, out = {0: 0}, {}
    for i in sorted(nodes):
        node = nodes[i]
        names[i] = hash((names[node.parent], hash((node.kind, node.object, node.vaddr))))
        if node.self_nr:
            out[names[i]] = out.get(names[i], 0) + node.self_nr
    return out


def compared(ctx, directory, options=(), every=1, seeds=5):
    """Overlap in time of morphd's tree with the exact one, beside that of an ideal sampler.
    @every: of N trees, each of one sample in N, the mean."""
    exact = exact_weights(ctx)
    rows = []
    for start in range(every):
        walked, nodes = made(directory, (*options, f"--every={every}", f"--from={start}"))
        product = product_weights(nodes)
        nr = sum(product.values())
        rows.append({"samples": nr, "nodes": len(nodes), "lost": len(walked) - nr,
                     "complete": sum(w.stop == "complete" for w in walked),
                     "exact": sum(w for k, w in product.items() if k in exact),
                     "overlap": cf.overlap(product, exact),
                     "ideal": cf.ideal(exact, nr, seeds),
                     "correlation": cf.correlation(product, exact)})
    out = {k: sum(row[k] for row in rows) / every for k in rows[0]}
    out["ratio"] = out["overlap"] / out["ideal"] if out["ideal"] else 0.0
    out["contexts"] = len(exact)
    return out


# ---- ages: which activations are new -----------------------------------------

class Ages:
    """Counts of activations by what is true and what is said of them."""

    METHODS = ("slots", "functions", "without", "with")

    def __init__(self):
        self.right = dict.fromkeys(self.METHODS, 0)
        self.nr = self.left_out = self.new = self.certain = self.wrong = 0
        self.nodes = self.held = self.loose = 0
        self.width = self.found = 0.0

    def add_sample(self, serials, before, said):
        """@serials: outermost first, without the first function; @said: {method: number of old}"""
        for k, serial in enumerate(serials, 1):
            new = serial not in before
            self.nr += 1
            self.new += new
            self.certain += k >= said["functions"]
            self.wrong += k >= said["functions"] and not new
            for method in self.METHODS:
                self.right[method] += (k >= said[method]) == new

    def add_entries(self, entries, exact):
        """@entries: {node: (total, least, estimate, most)}; @exact: {node: samples in which it is so}"""
        for node, (total, least, estimate, most) in entries.items():
            true = exact.get(node, 0)
            self.nodes += 1
            self.held += least <= true <= most
            self.width += (most - least) / total
            self.loose += most >= total and least <= 0
            self.found += abs(estimate - true) / total

    def figures(self):
        out = {f"right_{m}": self.right[m] / self.nr for m in self.METHODS} if self.nr else {}
        return {**out, "activations": self.nr, "left_out": self.left_out, "new": self.new,
                "certain": self.certain, "certain_wrong": self.wrong, "nodes": self.nodes,
                "held": self.held / self.nodes if self.nodes else 0.0, "loose": self.loose,
                "width": self.width / self.nodes if self.nodes else 0.0,
                "off": self.found / self.nodes if self.nodes else 0.0}


def ages_add(ages, directory, stacks, options, least):
    """Adds one run of the tool to @ages. @stacks: of cf.stacks(). @least: samples of a node whose
    bounds are looked at."""
    aged, entries, walked = {}, {}, {}
    for word in lines(directory, ("--ages", *options)):
        if word[0] == "sample":
            walked[int(word[1])] = Walked(word)
        elif word[0] == "age":
            aged[int(word[1])] = [int(w) for w in word[2:]]
        elif word[0] == "entries" and int(word[2]) >= least:
            entries[int(word[1])] = (int(word[2]), float(word[4]), float(word[5]), float(word[6]))
    before, exact = {}, {}
    for line in sorted(aged):
        nr, known, complete, functions, without, with_counts, *path = aged[line]
        thread, serials = stacks[line]
        last = before.get(thread)
        before[thread] = set(serials)
        if last is None or not known or not complete or nr != len(serials):
            ages.left_out += len(serials) - 1
            # nothing is said of these
            continue
        ages.add_sample(serials[1:], last, {"slots": walked[line].old + 1, "functions": functions,
                                            "without": without, "with": with_counts})
        for node, serial in zip(path, serials):
            if serial not in last:
                exact[node] = exact.get(node, 0) + 1
    ages.add_entries(entries, exact)


def ages(directory, options=(), every=1, least=10):
    """How morphd's classification of activations compares with their serial numbers."""
    out = Ages()
    stacks = cf.stacks(os.path.join(directory, "samples"))
    for start in range(every):
        ages_add(out, directory, stacks, (*options, f"--every={every}", f"--from={start}"), least)
    return out.figures()
