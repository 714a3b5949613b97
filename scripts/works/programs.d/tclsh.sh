# SPDX-License-Identifier: Apache-2.0
# The Tcl 8.6 shell with its library in the program.
# shellcheck shell=bash disable=SC2034

program_prepare() {
	fetch tcl8.6
	configured tcl8.6/unix --disable-shared --disable-rpath
}

program_build() {
	cp -a "$CACHE/configured/tcl8.6/unix/." "$W"
	# Link the library built here, not one that the system may have.
	sed -i "s|-L$CACHE/configured/tcl8.6/unix -ltcl8.6|libtcl8.6.a|" "$W/Makefile"
	# The directory of the scripts that the shell reads first, in the source.
	make -C "$W" -j"$JOBS" CFLAGS="$CFLAGS_V -w" CFLAGS_OPTIMIZE="-O2" \
		LDFLAGS="$LDFLAGS_V" TCL_LIBRARY="$CACHE/src/tcl8.6/library" tclsh
	if ldd "$W/tclsh" | grep libtcl; then return 1; fi
	mv "$W/tclsh" "$OUT/tclsh-$1"
}
