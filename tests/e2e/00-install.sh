#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make install puts every program, manual page and the unit where they belong,
# and nothing into /var/lib; the installed programs answer --version and --help.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
dest=$TMPDIR/dest
nr_failed=0
fail() {
	echo "FAIL: $*"
	nr_failed=$((nr_failed + 1))
}

cd "$root" || exit 1
make --no-print-directory O="$BUILD" DESTDIR="$dest" PREFIX=/usr install || {
	echo "FAIL: make install"
	exit 1
}

declare -A where=([daemon/morphd.c]=sbin/morphd [daemon/morph_stats.c]=bin/morph-stats
	[editor/morph_optimize.c]=bin/morph-optimize [editor/morph_audit.c]=bin/morph-audit)
nr=0
for src in "${!where[@]}"; do
	[ -e "$src" ] || continue
	nr=$((nr + 1))
	bin=$dest/usr/${where[$src]}
	[ -x "$bin" ] || { fail "$bin was not installed"; continue; }
	version=$("$bin" --version 2>&1) || fail "$bin --version: exit $?"
	[ -n "$version" ] || fail "$bin --version says nothing"
	help=$("$bin" --help 2>"$TMPDIR/err") || fail "$bin --help: exit $?"
	[ -n "$help" ] || fail "$bin --help says nothing on stdout"
	"$bin" --no-such-option >/dev/null 2>"$TMPDIR/err"
	[ $? = 2 ] || fail "$bin: an unknown option is not a usage error (2)"
	[ -s "$TMPDIR/err" ] || fail "$bin: an unknown option goes without a message"
done
for page in Documentation/*.[158]; do
	[ -e "$page" ] || continue
	[ -e "$dest/usr/share/man/man${page##*.}/$(basename "$page")" ] ||
		fail "$page was not installed"
	if command -v mandoc >/dev/null; then
		mandoc -T lint -W error "$page" || fail "$page: mandoc finds errors"
	fi
done
if [ -e daemon/morphd.service ]; then
	unit=$dest/usr/lib/systemd/system/morphd.service
	grep -q '^ExecStart=/usr/sbin/morphd' "$unit" || fail "the unit does not start /usr/sbin/morphd"
	! grep -qE '@[A-Z]+@' "$unit" || fail "the unit holds an unfilled @NAME@"
fi
[ ! -e "$dest/var" ] || fail "install made $dest/var: that is the unit's StateDirectory"
if [ $nr = 0 ]; then
	echo "skip: no program exists"
	exit 77
fi
echo "$nr programs, $nr_failed failures"
[ $nr_failed = 0 ]
