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
	# On the command line, as configure adds -s, which the relocations do not survive.
	make ONE_SOURCE=no -j"$JOBS" LDFLAGS="$LDFLAGS_V" tcc
	# Its run-time support, which it looks for even where nothing is needed of it.
	mkdir -p "$OUT/tcc-lib"
	"$CC" -O2 -w -c -o libtcc1.o lib/libtcc1.c
	ar rcs "$OUT/tcc-lib/libtcc1.a" libtcc1.o
	mv tcc "$OUT/tcc-$1"
}
