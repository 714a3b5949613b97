# SPDX-License-Identifier: Apache-2.0
# bzip2 with its library in the program, compiled directly.
# shellcheck shell=bash disable=SC2034,SC2086

program_prepare() {
	fetch bzip2
}

program_build() {
	local src=$CACHE/src/bzip2
	cd "$W" || return
	$CC $CFLAGS_V -D_FILE_OFFSET_BITS=64 $LDFLAGS_V -o bzip2 "$src"/{bzip2,blocksort,huffman}.c \
		"$src"/{crctable,randtable,compress,decompress,bzlib}.c
	mv bzip2 "$OUT/bzip2-$1"
}
