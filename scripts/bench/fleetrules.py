# SPDX-License-Identifier: Apache-2.0
"""Other ways to add the profiles of a fleet's hosts up, for bench-fleet-inputs --attack --rule=.

None of them is in use: Documentation/lab/fleet-scale.md says what they are worth beside `morph-fleet pull'.
"""

import bisect
import subprocess
from collections import Counter


def function_starts(binary):
    """Addresses of functions, from .eh_frame."""
    out = subprocess.run(["readelf", "--debug-dump=frames", binary], capture_output=True, text=True, check=True).stdout
    return sorted({int(line.split("pc=")[1].split("..")[0], 16) for line in out.splitlines() if " FDE " in line})


def cap_of(totals, quantile):
    """As read_hosts(): the nearest rank, but never the largest total if there are two or more."""
    ranks = sorted(totals)
    return ranks[max(1, min(-(-int(1000 * quantile * len(ranks)) // 1000), len(ranks) - 1)) - 1]


def capped(profiles, quantile=0.9):
    totals = [sum(c.values()) for c in profiles]
    cap = cap_of(totals, quantile)
    return [{a: n * min(1, cap / total) for a, n in c.items()} for c, total in zip(profiles, totals)]


def by_function(profiles, starts, quantile):
    """In each function, a host weighs as many samples as it has there, at most the quantile of the hosts' samples
    there. At each address, the host with the largest share of its own samples in the function counts as if it had the
    next host's share. What only one host has is left out."""
    functions = {}
    for host, counts in enumerate(capped(profiles)):
        for address, n in counts.items():
            functions.setdefault(bisect.bisect_right(starts, address), {}).setdefault(host, {})[address] = n
    found = Counter()
    for hosts in functions.values():
        totals = {host: sum(counts.values()) for host, counts in hosts.items()}
        cap = cap_of(totals.values(), quantile)
        shares = {}
        for host, counts in hosts.items():
            for address, n in counts.items():
                shares.setdefault(address, []).append((n / totals[host], min(totals[host], cap)))
        for address, found_shares in shares.items():
            found_shares.sort(reverse=True)
            if len(found_shares) > 1:
                most = found_shares[1][0]
                found[address] = round(sum(min(share, most) * weight for share, weight in found_shares))
    return +found


RULES = {"function": lambda profiles, starts: by_function(profiles, starts, 0.9),
         "function-median": lambda profiles, starts: by_function(profiles, starts, 0.5)}
