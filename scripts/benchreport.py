# SPDX-License-Identifier: Apache-2.0
"""What results.json of scripts/bench says, as text."""

def runs_of(versions, key):
    """The counted runs of a version, one for each profile."""
    return [v for k, v in sorted(versions.items())
            if (k == key or k.startswith(key + ".")) and "taken_branches" in v]


def best_setting(versions, candidates):
    """BOLT's setting with the fewest taken branches over its profiles; None: none works."""
    def taken(setting):
        runs = runs_of(versions, "bolt-" + setting)
        return sum(r["taken_branches"] for r in runs) / len(runs)
    working = [s for s in candidates if runs_of(versions, "bolt-" + s)]
    return min(working, key=taken) if working else None


def write(results, directory, candidates):
    pass


def print_summary(results, names, candidates):
    pass
