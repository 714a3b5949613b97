# SPDX-License-Identifier: Apache-2.0
"""Short work of programs of the distribution, without inputs of its own: arguments for each program."""

import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCES = [f"{ROOT}/editor/emit/emit.c", f"{ROOT}/libprof/cfg/cfg_block.c"]
STOCK = {
    "mawk": ["{n = split($0, w, / /); for (i = 1; i <= n; i++) c[w[i]]++} "
             "END {for (k in c) s += length(k) * c[k]; print s}", *SOURCES],
    "perl": ["-e", "my %c; while (<>) { $c{$_}++ for /\\w+/g } "
             "print join(' ', map { \"$_$c{$_}\" } sort keys %c), qq(\\n)", *SOURCES],
    "python3": ["-S", "-E", "-s", "-c", "print(sum(len(str(i * i)) for i in range(20000)))"],
    "jq": ["-n", "[range(2000) | {a: ., b: \"x\\(.)\"}] | map(select(.a % 3 == 0)) | length"],
    "objdump": ["-d", "/usr/bin/true"],
    "sed": ["-E", "s/([a-z]+)_([a-z]+)/\\2_\\1/g", *SOURCES],
    "git": ["diff", "--no-index", "--no-color", *SOURCES],
    "tar": ["-c", "-f", "-", "--mtime=@0", *SOURCES],
}
