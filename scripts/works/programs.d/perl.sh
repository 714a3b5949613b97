# SPDX-License-Identifier: Apache-2.0
# perl without its modules.
# shellcheck shell=bash disable=SC2034

program_prepare() {
	fetch perl
}

program_build() {
	cp -a "$CACHE/src/perl/." "$W"
	cd "$W" || return
	./Configure -des -Dcc="$CC" -Doptimize="$CFLAGS_V" -Dldflags="$LDFLAGS_V" \
		-Uusethreads -Dman1dir=none -Dman3dir=none -Dnoextensions=none </dev/null
	make -j"$JOBS" LDDLFLAGS= perl
	mv perl "$OUT/perl-$1"
}
