#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A fixed work of one of three kinds: `compile` some of Morph, run a shell `script` with many short
# programs, run programs that only `compute`; or `mixed`, one after the other.
set -eu
cd "$(dirname "$0")/../../.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

compile() {
	for f in libprof/elf/elf.c libprof/base/err.c libprof/cfg/cfg.c; do
		gcc -std=gnu17 -O2 -g -I. -D_GNU_SOURCE -c -o "$out/${f##*/}.o" "$f"
	done
}

script() {
	i=0
	while [ $i -lt 60 ]; do
		name=$(basename "/usr/lib/file$i.c" .c)
		echo "$name $((i * 7919 % 1000))" | sed 's/file//' >>"$out/list"
		i=$((i + 1))
	done
}

compute() {
	cat libprof/*/*.c >"$out/text"
	gzip -9 -c "$out/text" >"$out/text.gz"
	tr -cs '[:alnum:]_' '\n' <"$out/text" | sort | uniq -c | sort -rn >"$out/words"
	awk '{ n += length($2) * $1 } END { for (i = 0; i < 3000000; i++) n += i % 7; print n }' \
		"$out/words" >"$out/sum"
}

case $1 in
mixed)
	compile
	script
	compute ;;
*) "$1" ;;
esac
