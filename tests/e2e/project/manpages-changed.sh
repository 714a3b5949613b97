#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# long
# The check of manual pages (manpages.sh) fails for a page with an option too many, too few or without its argument.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)
nr_failed=0
fail() {
	echo "FAIL: $*"
	nr_failed=$((nr_failed + 1))
}

mkdir -p "$TMPDIR/tree/scripts/check" "$TMPDIR/tree/scripts/package" && cp "$root/scripts/check/manpages" "$TMPDIR/tree/scripts/check/" || exit 1
mkdir -p "$TMPDIR/tree/libprof/cli" && cp "$root/libprof/cli/exit_status.h" "$TMPDIR/tree/libprof/cli/" || exit 1
# From here on only the pages change, so the programs' completions are made once.
mkdir "$TMPDIR/said" && for p in morph morphd morph-stats morph-optimize morph-audit morph-worker; do
	"$root/scripts/package/completion" "$BUILD/$p" >"$TMPDIR/said/$p" || exit 1
done
printf '#!/bin/sh\ncat "%s/${1##*/}"\n' "$TMPDIR/said" >"$TMPDIR/tree/scripts/package/completion"
chmod +x "$TMPDIR/tree/scripts/package/completion"

# finds MESSAGE PAGE SED [PROGRAM]: scripts/check/manpages reports MESSAGE after SED has changed the page. Only
# the page's program is checked, because the others are as they are in the tree.
finds() {
	rm -rf "$TMPDIR/tree/Documentation"
	mkdir "$TMPDIR/tree/Documentation" && cp "$root"/Documentation/{*.[0-9],architecture.md} "$TMPDIR/tree/Documentation/" || exit 1
	sed -i "$3" "$TMPDIR/tree/Documentation/$2"
	"$TMPDIR/tree/scripts/check/manpages" "${4:-${2%.*}}" >"$TMPDIR/out" && fail "not seen: $1"
	grep -qF -- "$1" "$TMPDIR/out" || fail "\"$1\" expected: $(head -n 3 "$TMPDIR/out")"
}
finds "does not describe --dry-run of morph-optimize" morph-optimize.1 '/^\.It Fl n , Fl -dry-run/d'
finds "describes --loud, which morphd does not print" morphd.8 's/^\.It Fl -no-kernel/.It Fl -loud/'
finds "--cpu of morph-audit takes an argument" morph-audit.1 's/^\.It Fl -cpu Ns.*/.It Fl -cpu/'
finds "describes --check under query" morph-stats.1 's/^\.It Fl -by Ns.*/.It Fl -check/'
finds "describes --quick, which morph-stats does not print" morph-stats.1 \
	's/^\.Op Fl -event Ns.*/.Op Fl -quick/'
finds "the synopsis lacks morph-stats flame" morph-stats.1 '/^\.Cm flame$/d'
finds "--format of morph-stats export: does not name pprof" morph-stats.1 's/pprof/proof/g'
finds "--by=colour is not taken by morph-stats" morph-stats.1 's/^\.It Fl -by Ns = Ns Cm module/.It Fl -by Ns = Ns Cm colour/'
finds "does not describe exit status 5" morph-audit.1 '/^\.It 5$/d'
finds "describes exit status 8" morph-optimize.1 's/^\.It 4$/.It 8/'
finds "only one has exit status 75" architecture.md '/^| 75 /d' morph-worker

# A new command of a program must be described: scripts/check/manpages has no list of commands.
mkdir -p "$TMPDIR/learnt" && for p in morphd morph-optimize morph-audit morph-worker; do
	ln -sf "$(cd "$BUILD" && pwd)/$p" "$TMPDIR/learnt/$p"
done
cat >"$TMPDIR/learnt/morph-stats" <<S
#!/bin/bash
if [ "\${1:-}" = dance ]; then
	shift
	exec "$(cd "$BUILD" && pwd)/morph-stats" status "\$@" | sed 's/--check/--speed/'
fi
"$(cd "$BUILD" && pwd)/morph-stats" "\$@" | sed 's/^  status .*/&\n  dance     to music/'
exit "\${PIPESTATUS[0]}"
S
chmod +x "$TMPDIR/learnt/morph-stats"
BUILD=$TMPDIR/learnt "$root/scripts/check/manpages" morph-stats >"$TMPDIR/out" && fail "a new command passes"
for text in "the synopsis lacks morph-stats dance" "does not describe --speed of morph-stats dance"; do
	grep -qF -- "$text" "$TMPDIR/out" || fail "a new command: \"$text\" expected: $(head -n 3 "$TMPDIR/out")"
done
[ $nr_failed = 0 ]
