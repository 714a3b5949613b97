# SPDX-License-Identifier: Apache-2.0
# dash, Debian's /bin/sh. A Debian patch adds priv.c, which the shipped configure does not know.
# shellcheck shell=bash disable=SC2034,SC2086

program_prepare() {
	fetch dash
	configured dash --disable-dependency-tracking
}

program_build() {
	cp -a "$CACHE/configured/dash/." "$W"
	$CC $CFLAGS_V -DSHELL -I"$W" -include "$W/config.h" -c "$CACHE/src/dash/src/priv.c" -o "$W/priv.o"
	make -C "$W" -j"$JOBS" CFLAGS="$CFLAGS_V" LDFLAGS="$LDFLAGS_V" LIBS="$W/priv.o"
	mv "$W/src/dash" "$OUT/dash-$1"
}
