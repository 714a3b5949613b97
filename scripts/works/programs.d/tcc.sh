# SPDX-License-Identifier: Apache-2.0
# The Tiny C Compiler, as one program; it compiles into memory and runs the result.
# shellcheck shell=bash disable=SC2034

program_prepare() {
	fetch tcc
}

program_build() {
	cp -a "$CACHE/src/tcc/." "$W"
	cd "$W" || return
	./configure --cc="$CC" --extra-cflags="$CFLAGS_V -w" \
		--triplet=x86_64-linux-gnu --tccdir="$OUT/tcc-lib"
	# Set LDFLAGS on the command line, because configure adds -s, which drops relocations.
	make ONE_SOURCE=no -j"$JOBS" LDFLAGS="$LDFLAGS_V" tcc
	# tcc looks for its run-time library even if no function of the library is needed.
	mkdir -p "$OUT/tcc-lib"
	"$CC" -O2 -w -c -o libtcc1.o lib/libtcc1.c
	ar rcs "$OUT/tcc-lib/libtcc1.a" libtcc1.o
	mv tcc "$OUT/tcc-$1"
}
