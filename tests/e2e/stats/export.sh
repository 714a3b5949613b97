#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Exports for callgrind_annotate, go tool pprof and jq. Their totals and functions are compared with
# the database. Also missing files, full disks and wrong options.
. "$(dirname "$0")/lib-export.sh"
need gcc g++ valgrind callgrind_annotate jq python3

gcc -O2 -g "so urce/main prog.c" "so urce/second.c" "so urce/third.c" -o "c prog" || exit 1
g++ -O2 -g "so urce/main prog.cc" "so urce/else where.cc" -o cxx || exit 1

# top DB PROGRAM: the name of the hottest function, and the samples in all functions of that name
top() {
	"$BUILD/morph-stats" --db "$1" query --binary="$2" --by=function --json |
		jq -r '.rows[0].function as $f |
			"\($f) \([.rows[] | select(.function == $f) | .samples] | add)"'
}
samples() {
	"$BUILD/morph-stats" --db "$1" query --binary="$2" --by=module --json | jq .rows[0].samples
}

for prog in "c prog" cxx; do
	rm -f s.db*
	counted "$prog" s.db
	total=$(samples s.db "$prog")
	[ "$total" -gt 100000 ] || fail "$prog: only $total samples"
	read -r hot hot_samples < <(top s.db "$prog")

	# ---- callgrind_annotate: the same total, the same function first, its lines
	ends 0 "callgrind" out.cg --db s.db export --format=callgrind --binary="$prog"
	callgrind_annotate --auto=yes --threshold=100 out.cg >ann.txt 2>ann.err ||
		fail "callgrind_annotate $prog: $(head -3 ann.err)"
	says out.cg '^fl=/.*so urce/main prog.c' "whole names of files"
	[ -s ann.err ] && fail "callgrind_annotate $prog complains: $(head -3 ann.err)"
	have=$(sed -n 's/^ *\([0-9,]*\) (100.0%)  PROGRAM TOTALS.*/\1/p' ann.txt | tr -d ,)
	[ "$have" = "$total" ] || fail "$prog: callgrind_annotate adds up $have of $total"
	# Inlined code is listed under its own file, so add up all lines of the function.
	have=$(awk -v f=":$hot" '
		/^-- Auto-annotated/ { exit }
		{ n = $1; gsub(",", "", n) }
		index($0, f) && n ~ /^[0-9]+$/ { split($0, part, ":"); sub(/ \[.*/, "", part[2])
			if (":" part[2] == f) s += n }
		END { print s + 0 }' ann.txt)
	[ "$have" = "$hot_samples" ] ||
		fail "$prog: callgrind_annotate: $have of $hot_samples in $hot"
	callgrind_annotate --inclusive=yes --tree=both out.cg >tree.txt 2>&1 ||
		fail "callgrind_annotate --inclusive: $(head -3 tree.txt)"
	if [ "$prog" = "c prog" ]; then
		says ann.txt '[0-9] .*return n % 5 ? n \* 3' "a line that was inlined"
		if command -v go >/dev/null; then
			ends 0 "pprof" c.pb.gz --db s.db export --format=pprof --binary="$prog"
			HOME=$dir go tool pprof -top -cum -nodefraction=0 c.pb.gz >cum.txt 2>&1
			awk -v f="$hot" -v n="$hot_samples" '
				$6 == f && $4 == n { found = 1 } END { exit !found }' cum.txt ||
				fail "pprof: $hot has not $hot_samples: $(cat cum.txt)"
			says cum.txt 'inlined (inline)' "inlined frames"
		fi
	fi
	c++filt <out.cg >demangled.cg
	callgrind_annotate demangled.cg >/dev/null 2>&1 || fail "$prog: demangled"
done
# main's inclusive cost is the total, and its calls have counts.
says tree.txt '\* .*main prog.cc:main' "inclusive"
says tree.txt '>  *.*elsewhere.* ([0-9,]*x)' "calls of main"
says ann.txt 'Auto-annotated source: .*main prog.cc' "annotated source with a blank in its name"
says ann.txt 'Auto-annotated source: .*stl_algo.h' "a header whose code was inlined"

# ---- pprof
ends 0 "pprof" out.pb.gz --db s.db export --format=pprof --binary=cxx
gzip -t out.pb.gz || fail "pprof: not gzip"
if ! command -v go >/dev/null; then
	left_out="go tool pprof is missing (apt-get install golang-go, 450 MB)"
else
	export GOCACHE="$dir/go" HOME="$dir"
	go tool pprof -top -nodecount=1000 -nodefraction=0 out.pb.gz >top.txt 2>pprof.err ||
		fail "go tool pprof: $(head -3 pprof.err)"
	says top.txt "of $total total" "pprof's total"
	says top.txt 'square::area' "demangled names"
	says top.txt 'std::sort (inline)' "inlined frames"
	go tool pprof -raw out.pb.gz >raw.txt 2>/dev/null
	id=$(readelf -n cxx | awk '/Build ID/ { print $3 }')
	says raw.txt "/cxx $id \[FN\]\[FL\]\[LN\]\[IN\]" "mapping with build-id"
	go tool pprof -list='square::area' out.pb.gz >list.txt 2>&1
	says list.txt 'return twice(x) + local(x);' "source lines"
	go tool pprof -disasm='elsewhere' out.pb.gz >disasm.txt 2>&1
	says disasm.txt '_ZL5locali' "disassembly"
	# All modules, some without their file.
	ends 0 "pprof of all" all.pb.gz --db s.db export --format=pprof
	go tool pprof -top all.pb.gz >top.txt 2>&1 || fail "go tool pprof of all: $(head -3 top.txt)"
	stored=$("$BUILD/morph-stats" --db s.db status --json | jq .samples.attributed)
	says top.txt "of $stored total" "pprof's total of all"
fi

# ---- JSON
ends 0 "json" out.json --db s.db export --format=json --binary=cxx
jq -e --argjson n "$total" --arg f "$hot" --argjson h "$hot_samples" '
	.schema == 1 and (.modules | length) == 1 and (.modules[0] |
	([.addresses[][1]] | add) == $n and
	([.functions[].samples] | add) + .samples_outside == $n and
	([.functions[] | select(.name == $f) | .samples] == [$h]) and
	([.functions[].blocks[].samples] | add) <= $n and
	([.functions[] | select(.name == "main") | .calls | length] | add) > 0)' \
	out.json >/dev/null || fail "json: $(head -c 600 out.json)"
ends 0 "json of all" all.json --db s.db export --format=json
jq -e '.modules | length > 1' all.json >/dev/null || fail "json of all: $(head -c 300 all.json)"
# Inferred counts of a function obey the flow: no more leaves a block than enters it.
jq -e '[.modules[0].functions[].blocks[] | select((.to | length) > 0) |
	(([.to[][2]] | add) - .count) > .count * 0.0001 + 0.0001] | any | not' out.json \
	>/dev/null || fail "json: more leaves a block than enters it"

# ---- time per sample: known for a timer with one rate
if "$BUILD/morphd" run --db=r.db --rate=4000 -- ./cxx 300000 >/dev/null 2>&1; then
	SAMPLED=--rate=4000 sampled r.db cxx 100 ./cxx 300000
	ends 0 "json with time" out.json --db r.db export --format=json
	jq -e '.sample_ns == 250000' out.json >/dev/null || fail "time: $(head -c 100 out.json)"
	if command -v go >/dev/null; then
		ends 0 "pprof with time" out.pb.gz --db r.db export --format=pprof
		HOME=$dir go tool pprof -top out.pb.gz >top.txt 2>&1
		says top.txt '^Type: cpu$' "pprof with time"
		n=$(jq '[.modules[].samples] | add' out.json)
		HOME=$dir go tool pprof -top -unit=us out.pb.gz >top.txt 2>&1
		says top.txt "of $((n * 250))us total" "pprof with time"
	fi
	SAMPLED=--rate=1000 sampled r.db cxx 1 ./cxx 300000
	ends 0 "json with two rates" out.json --db r.db export --format=json
	jq -e '.sample_ns == 0' out.json >/dev/null || fail "two rates: $(head -c 100 out.json)"
fi

# ---- stripped: names and lines come from the separate debug file, if there is one
objcopy --only-keep-debug cxx cxx.debug && strip -o stripped cxx &&
	objcopy --add-gnu-debuglink=cxx.debug stripped || exit 1
ends 0 "callgrind, debug file" debug.cg --db s.db export --format=callgrind --binary=stripped
ends 0 "callgrind, whole file" whole.cg --db s.db export --format=callgrind --binary=cxx
for f in "$hot" _Z9elsewherei; do
	says debug.cg "^fn=$f\$" "stripped, with a debug file"
done
lines() {
	awk '/^calls=/ { getline; next } /^0x/ && NF == 3 { print $1, $2, $3 }' "$1" | sort
}
diff <(lines whole.cg) <(lines debug.cg) >diff.txt ||
	fail "lines of a debug file: $(head -4 diff.txt)"
rm cxx.debug
ends 0 "callgrind, stripped" bare.cg --db s.db export --format=callgrind --binary=stripped
says bare.cg '^fn=0x[0-9a-f]*$' "stripped"
callgrind_annotate bare.cg >ann.txt 2>&1 || fail "callgrind_annotate, stripped"
have=$(sed -n 's/^ *\([0-9,]*\) (100.0%)  PROGRAM TOTALS.*/\1/p' ann.txt | tr -d ,)
[ "$have" = "$total" ] || fail "stripped: callgrind_annotate adds up $have of $total"

# ---- the file is missing or has been replaced
mv cxx away
for f in folded callgrind pprof json; do
	ends 0 "$f without the file" out.txt --db s.db export --format=$f -m cxx
	says err.txt 'cxx: ' "$f without the file"
done
jq -e '.modules[0] | .code == false and (.why | length) > 0 and (.functions | length) == 0' \
	out.txt >/dev/null || fail "json without the file: $(head -c 400 out.txt)"
ends 0 "callgrind without the file" out.cg --db s.db export --format=callgrind -m cxx
callgrind_annotate out.cg >ann.txt 2>&1 || fail "callgrind_annotate without the file"
says ann.txt '100.0%)  PROGRAM TOTALS' "callgrind without the file"
for f in fdata order; do
	ends 1 "$f without the file" out.txt --db s.db export --format=$f -m cxx
	[ "$(wc -l <err.txt)" = 1 ] || fail "$f without the file: $(cat err.txt)"
	[ ! -s out.txt ] || fail "$f without the file writes something"
	ends 0 "$f with the file elsewhere" out.txt --db s.db export --format=$f --binary=away
done
cp "c prog" cxx
ends 1 "another file" out.txt --db s.db export --format=order -m cxx
says err.txt 'is not the file that was profiled' "another file"
rm cxx
mv away cxx

# ---- a full disk, impossible options, several modules
for f in folded callgrind pprof json fdata order; do
	"$BUILD/morph-stats" --db s.db export --format=$f --binary=cxx >/dev/full 2>err.txt
	[ $? = 1 ] || fail "$f on a full disk: no failure"
	says err.txt 'No space left' "$f on a full disk"
done
for f in fdata order; do
	ends 1 "$f of several modules" out.txt --db s.db export --format=$f
	says err.txt 'takes one module' "$f of several modules"
done
ends 1 "no branch was seen" out.txt --db s.db export --format=fdata --binary=cxx --branches=seen
ends 2 "no such format" out.txt --db s.db export --format=nothing
ends 2 "no such linker" out.txt --db s.db export --format=order --linker=nothing
ends 2 "no such branches" out.txt --db s.db export --format=fdata --branches=nothing
ends 2 "no such order" out.txt --db s.db export --format=order --function-order=original
ends 2 "json of export" out.txt --db s.db export --format=folded --json
ends 3 "no such module" out.txt --db s.db export --format=json -m nothing
if command -v script >/dev/null; then
	script -qec "'$BUILD/morph-stats' --db s.db export --format=pprof" /dev/null >out.txt </dev/null
	[ $? = 2 ] || fail "pprof to a terminal: $(head -c 200 out.txt)"
fi
finish
