# SPDX-License-Identifier: Apache-2.0
# mawk, Debian's awk.
# shellcheck shell=bash disable=SC2034

program_prepare() {
	fetch mawk
}

program_build() {
	cp -a "$CACHE/src/mawk/." "$W"
	cd "$W" || return
	CC=$CC CFLAGS="$CFLAGS_V" LDFLAGS="$LDFLAGS_V" ./configure
	make -j"$JOBS" CFLAGS="$CFLAGS_V" LDFLAGS="$LDFLAGS_V" mawk
	mv mawk "$OUT/mawk-$1"
}
