#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Section headers need not be in the order of their sections. Such a file is moved, counted and
# numbered like any other, and behaves the same.
. "$(dirname "$0")/../lib.sh"
scratch headers
need gzip python3
optimize=$BUILD/morph-optimize

# swap FROM TO A B: exchange the headers of sections A and B
swap() {
	python3 - "$@" <<'PY'
import struct
import sys

path, out, *pair = sys.argv[1:]
data = bytearray(open(path, "rb").read())
start, = struct.unpack_from("<Q", data, 40)
size, nr, strings = struct.unpack_from("<HHH", data, 58)
names, = struct.unpack_from("<Q", data, start + size * strings + 24)
headers = {}
for at in range(start, start + size * nr, size):
    name = names + struct.unpack_from("<I", data, at)[0]
    headers[data[name:data.index(0, name)].decode()] = at
a, b = (slice(headers[name], headers[name] + size) for name in pair)
data[a], data[b] = data[b], data[a]
open(out, "wb").write(data)
PY
}

seq 200000 >text
program=$(command -v gzip)
"$program" -nc text >expected
for pair in ".init .fini" ".plt .text"; do
	# shellcheck disable=SC2086
	swap "$program" swapped $pair || fail "$pair: not swapped"
	chmod +x swapped
	for how in --all --lab=stress-layout=5 "instrument --all --kind=edges" "instrument --all --kind=pep" \
		"instrument --all --kind=pep,poll"; do
		# shellcheck disable=SC2086
		"$optimize" $how --report=none -o moved swapped 2>err ||
			fail "$pair $how: exit $?: $(head -n 1 err)"
		./moved -nc text >out || fail "$pair $how: gzip's exit $?"
		cmp -s out expected || fail "$pair $how: another output"
	done
done
finish
