# SPDX-License-Identifier: Apache-2.0
# GNU troff, the formatter of groff, in C++. Fonts and macros are those of Debian's
# groff-base, which is the same version.
# shellcheck shell=bash disable=SC2034,SC2016

program_prepare() {
	fetch groff
	configured groff --prefix=/usr --disable-dependency-tracking --without-x --with-doc=no
}

program_build() {
	cp -a "$CACHE/configured/groff/." "$W"
	# The generated headers belong to `all', which would build every
	# program. `all' would also make these directories.
	mkdir -p "$W/lib/sys" "$W/lib/uniwidth"
	printf 'include Makefile\nmorph-built: $(BUILT_SOURCES)\n' >"$W/morph.mk"
	make -C "$W" -f morph.mk -j"$JOBS" morph-built
	make -C "$W" -j"$JOBS" CFLAGS="$CFLAGS_V" CXXFLAGS="$CFLAGS_V -w" LDFLAGS="$LDFLAGS_V" \
		troff
	mv "$W/troff" "$OUT/troff-$1"
}
