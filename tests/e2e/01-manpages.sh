#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The manual pages describe the options that --help prints, and no others; a page
# with one option too many, too few or without its argument does not pass.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
nr_failed=0
fail() {
	echo "FAIL: $*"
	nr_failed=$((nr_failed + 1))
}

"$root/scripts/manpages" || fail "pages and --help differ"

mkdir -p "$TMPDIR/tree/scripts" && cp "$root/scripts/manpages" "$TMPDIR/tree/scripts/" || exit 1

# finds MESSAGE PAGE SED: the script sees what the sed expression does to the page
finds() {
	rm -rf "$TMPDIR/tree/Documentation"
	cp -r "$root/Documentation" "$TMPDIR/tree/" || exit 1
	sed -i "$3" "$TMPDIR/tree/Documentation/$2"
	"$TMPDIR/tree/scripts/manpages" >"$TMPDIR/out" && fail "not seen: $1"
	grep -qF -- "$1" "$TMPDIR/out" || fail "\"$1\" expected: $(head -n 3 "$TMPDIR/out")"
}
finds "does not describe --dry-run of morph-optimize" morph-optimize.1 '/^\.It Fl n , Fl -dry-run/d'
finds "describes --loud, which morphd does not print" morphd.8 's/^\.It Fl -no-kernel/.It Fl -loud/'
finds "--cpu of morph-audit takes an argument" morph-audit.1 's/^\.It Fl -cpu Ns.*/.It Fl -cpu/'
finds "describes --check under query" morph-stats.1 's/^\.It Fl -by Ns.*/.It Fl -check/'
finds "describes --quick, which morph-stats does not print" morph-stats.1 \
	's/^\.Op Fl -event Ns.*/.Op Fl -quick/'
[ $nr_failed = 0 ]
