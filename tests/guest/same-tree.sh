#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# icount
# long
# timeout: 10000000
# The same work gives the same calling context tree from the module, which walks stacks in its interrupt, from
# BPF, which does so by other code, and from perf, whose copies morphd walks. As in same-profile.sh, the clock
# counts instructions. One run of each source is compared by chi-square. The long form draws 20 runs of each by
# lot, as same-profile.sh does.
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null && command -v sqlite3 >/dev/null || { echo "skip: jq or sqlite3 is missing"; exit 77; }

lottery() {
	cat >cc <<'CC'
#!/bin/bash
while [ $# -gt 0 ] && [ "$1" != -o ]; do shift; done
exec cp "$GUEST/$2" "$2"
CC
	chmod +x cc
	CC=$PWD/cc SOURCES="kmod perf bpf" RUNS=${RUNS:-20} RATE=4000 MS=400 ALARMS=100000 \
		bash "$root/tests/e2e/morphd/same-tree.sh" >said 2>&1
	status=$?
	cat said
	case $status in
	0|77) ;;
	*) fail "$(grep -m 1 FAIL said || tail -n 1 said)" ;;
	esac
	[ "$(grep -c '^contexts, .*: the same; ' said)" = 3 ] || fail "not all was compared"
}

# collect SOURCE: add lines "SOURCE CONTEXT SAMPLES" to the table
collect() {
	local daemon
	rm -f db*
	"$BUILD/morphd" --source="$1" --rate=4000 --stacks --db=db --json >out 2>err &
	daemon=$!
	until [ -n "$(sqlite3 -readonly db "SELECT key FROM session" 2>/dev/null)" ]; do
		kill -0 $daemon 2>/dev/null || { fail "$1: $(cat err)"; return; }
		sleep 0.1
	done
	# Walks in the kernel need the rows of the program's files.
	./mix 1 && sleep 2
	./mix 400 routes || fail "$1: mix: $?"
	kill -TERM $daemon
	wait $daemon || fail "$1: morphd: $?: $(cat err)"
	echo "$1: $(jq -M -c .stacks out)"
	"$BUILD/morph-stats" query --db=db --by=context -m mix --percent-limit=0 --json |
		jq -r --arg source "$1" '.rows[] | select(.self_samples > 0 and .path[4] == "main") |
			"\($source) main>\(.path[5:] | map(. // "-") | join(">")) \(.self_samples)"' >>table
}

# Contexts with fewer than 20 samples of both sources are one. A difference by chance is five standard deviations
# beyond what is expected once in millions of tests. One that is not by chance is seen: without its largest context,
# a source must differ.
compare() {
	awk '
	function chi(a, b, drop,    p, x, y, x1, y1, na, nb, sum, nr, ra, rb, e, f) {
		for (p in paths) { na += n[a, p]; nb += p == drop ? 0 : n[b, p] }
		for (p in paths) {
			x = n[a, p] + 0; y = p == drop ? 0 : n[b, p] + 0
			if (n[a, p] + n[b, p] < 20) { ra += x; rb += y; continue }
			e = (x + y) * na / (na + nb); f = (x + y) * nb / (na + nb)
			sum += (x - e) ^ 2 / e + (y - f) ^ 2 / f; nr++
		}
		if (ra + rb) {
			e = (ra + rb) * na / (na + nb); f = (ra + rb) * nb / (na + nb)
			sum += (ra - e) ^ 2 / e + (rb - f) ^ 2 / f; nr++
		}
		freedom = nr - 1; limit = freedom + 5 * sqrt(2 * freedom)
		return sum
	}
	{ n[$1, $2] += $3; all[$1] += $3; paths[$2]; both[$2] += $3 }
	END {
		for (p in both) if (both[p] > both[largest]) largest = p
		nr = split("kmod perf bpf", s, " ")
		for (i = 1; i <= nr; i++) if (all[s[i]] < 1000) print "FAIL: " s[i] ": only " all[s[i]] + 0 " samples"
		for (i = 1; i < nr; i++) for (j = i + 1; j <= nr; j++) {
			value = chi(s[i], s[j])
			if (value > limit) printf "FAIL: "
			printf "%s (%d) and %s (%d): chi-square %.1f of %d contexts, at most %.1f\n",
				s[i], all[s[i]], s[j], all[s[j]], value, freedom + 1, limit
			if (freedom < 20) print "FAIL: only " freedom + 1 " contexts"
			if (chi(s[i], s[j], largest) <= limit) print "FAIL: a missing context is not seen"
		}
	}' table >said
	cat said
	! grep -q FAIL said || fail "$(grep -m 1 FAIL said)"
}

load
status=0
if [ "$LONG" = 1 ]; then
	lottery
else
	cp "$GUEST/mix" "$GUEST/libmix.so" .
	for source in kmod perf bpf; do collect $source; done
	compare
fi
unload
[ $nr_failed != 0 ] || [ $status = 0 ] || { tail -n 1 said; exit 77; }
finish
