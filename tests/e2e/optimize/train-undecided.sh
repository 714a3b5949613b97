#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# An audit that train runs and that ends undecided with all pairs that it may have is not continued: status 7, and
# the version is kept. A command that fails each time gets a warning. A script stands in for morph-audit, so that the
# verdict is known.
. "$(dirname "$0")/../lib.sh"
cc=${CC:-gcc}
need "${cc%% *}"
"$BUILD/morphd" run --record "${TMPDIR:-/tmp}/undecided-probe.$$" -- true 2>/dev/null || {
	echo "skip: no sampling on this machine"
	exit 77
}
rm -f "${TMPDIR:-/tmp}/undecided-probe.$$"
scratch train-undecided
export MORPH_DB=$dir/morph.db

mkdir bin
cp "$BUILD/morph-optimize" bin/
ln -s "$BUILD/morphd" "$BUILD/morph-stats" bin/
cat >bin/morph-audit <<'EOF'
#!/bin/bash
echo "$*" >>"${0%/*}/../asked"
case " $* " in *" --continue="*) echo "asked to go on with all pairs" >&2; exit 1 ;; esac
for word; do
	case $word in
	--export=*.json) cat >"${word#*=}" <<JSON
{"verdict": "undecided", "speedup": 1.01, "interval": [0.9, 1.1], "alpha": 0.005, "pairs": 500, "difference": ""}
JSON
		;;
	--export=*.csv) echo "pair,a,b" >"${word#*=}" ;;
	esac
done
exit 5
EOF
chmod +x bin/morph-audit
cat >work.c <<'EOF'
#include <stdlib.h>
int main(int argc, char **argv)
{
	unsigned long s = 0, n = 1;
	for (unsigned int i = 0; i < 60000000; i++) {
		n = n * 6364136223846793005ul + 1442695040888963407ul;
		if (n >> 62 == 3)
			s += n & 1 ? 3 : n >> 5;
	}
	return argc > 1 ? atoi(argv[1]) : s == 1;
}
EOF
$cc -O2 -o work work.c || exit 1

got=0
bin/morph-optimize train -o new -- ./work >out.txt 2>err.txt || got=$?
[ $got = 7 ] || fail "undecided with all pairs: status $got: $(tail -3 err.txt)"
[ -s asked ] || fail "morph-audit's stand-in was not asked"
! grep -q -e --continue asked || fail "an audit with all its pairs was continued"
[ -x new.undecided ] && [ -s new.undecided.csv ] || fail "the undecided version was not kept"
! grep -q 'ends with status' err.txt || fail "a warning of a command that does not fail: $(cat err.txt)"

got=0
bin/morph-optimize train -o new -- ./work 3 >out.txt 2>err.txt || got=$?
grep -q 'the command ends with status 3' err.txt || fail "no warning of a command that fails: $(cat err.txt)"
[ $got = 7 ] || fail "a command that ends with status 3: status $got"
[ $nr_failed = 0 ]
