# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Puts outputs into running programs, by a preloaded library. Source it after ../lib.sh.

# build_put: the library, ./put.so
build_put() {
	gcc -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -I"$root" -shared -fPIC -o put.so \
		"$root/tests/e2e/live/put.c" "$root/daemon/live/lookup/lookup.c"
}

# put_in ORIGINAL OUTPUT: set ${put[@]}, before whose command OUTPUT is put in the place of ORIGINAL's code
put_in() {
	put=(env LD_PRELOAD="$PWD/put.so" PUT_ORIGINAL="$(realpath "$1")" PUT_OUTPUT="$PWD/$2")
}

# needs_lookup: skip the test where libc cannot tell unwinders of copies
needs_lookup() {
	local libc
	libc=$(ldd /bin/sh | awk '$1 == "libc.so.6" { print $3 }')
	readelf -W --dyn-syms "$libc" | grep -q ' _dl_find_object@' || { echo "skip: an old libc"; exit 77; }
}
