#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-stats annotate on programs that were really sampled: its sums equal query's. C, C++, a
# stripped program, separate debug information, an optimised program, ambiguous names.
. "$(dirname "$0")/../lib.sh"
scratch annotate
debug=""
at_exit 'rm -rf "$dir"; [ -z "$debug" ] || rm -f "$debug"'

says_not() {
	! grep -q -e "$2" "$1" || fail "$3: '$2' in $1"
}

"$BUILD/morphd" run --no-kernel --db probe.db -- true 2>err.txt || {
	echo "skip: no sampling on this machine: $(head -n 1 err.txt)"
	exit 77
}

cat >one.c <<'C'
#include "two.h"
static inline __attribute__((always_inline)) long step(long s, long i)
{
	return s + (i * 7) % 13;
}
static __attribute__((noinline)) long twin(long n)
{
	long s = 0;
	for (long i = 0; i < n; i++) {
		if (i % 64 == 0)
			s ^= 3;
		s = step(s, i);
	}
	return s;
}
__attribute__((noinline)) long idle(long n)
{
	return n * 3 + 1;
}
long work(long n)
{
	return twin(n) + other(n / 2) + (n < 0 ? idle(n) : 0);
}
C
cat >two.c <<'C'
#include "two.h"
#include <stdio.h>
#include <stdlib.h>
static __attribute__((noinline)) long twin(long n)
{
	long s = 0;
	for (long i = 0; i < n; i++)
		s += (i * 5) % 11;
	return s;
}
long other(long n)
{
	return twin(n);
}
int main(int argc, char **argv)
{
	printf("%ld\n", work(argc > 1 ? atol(argv[1]) : 1000));
	return 0;
}
C
cat >two.h <<'C'
long work(long n);
long other(long n);
C
cat >cxx.cc <<'C'
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
namespace shop {
__attribute__((noinline)) long work(long n)
{
	long s = 0;
	for (long i = 0; i < n; i++)
		s ^= i * 3 % 7;
	return s;
}
__attribute__((noinline)) long work(long n, int k)
{
	long s = 0;
	for (long i = 0; i < n; i++) {
		if (i < s - 100)
			throw std::runtime_error("never");
		s = (s ^ (i * k % 7)) & 15;
	}
	return s;
}
}
int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000;
	try {
		printf("%ld\n", shop::work(n) + shop::work(n, argc));
	} catch (std::exception &) {
		return 1;
	}
}
C
cc=${CC:-gcc}
# shellcheck disable=SC2086
$cc -g -O1 -Wl,--build-id one.c two.c -o prog || exit 1
# Without debug information names come from symbols. The optimiser needs relocations.
$cc -O1 -Wl,--build-id -Wl,--emit-relocs one.c two.c -o plain || exit 1
sampled a.db prog 600 ./prog 40000000

# ---- usage
ends 2 "no function" --db a.db annotate
ends 2 "two functions" --db a.db annotate work other
ends 2 "a bad address" --db a.db annotate work --address=12
ends 2 "a bad color" --db a.db annotate work --color=blue
ends 2 "a bad time" --db a.db annotate work --since=never
ends 0 "help" annotate --help
ends 3 "no database" --db none.db annotate work
ends 3 "no such module" --db a.db annotate work -m nothing
ends 3 "nothing since tomorrow" --db a.db annotate --since=@99999999999 work
ends 1 "no such function" --db a.db annotate nothing
[ "$(wc -l <err.txt)" = 1 ] || fail "no such function: $(cat err.txt)"
ends 1 "no such file" --db a.db annotate work --binary=nothing
ends 1 "no ELF file" --db a.db annotate work --binary=one.c
ends 1 "no code there" --db a.db annotate 0x1 --binary=prog
ends 1 "another's address" --db a.db annotate work@0x1 --binary=prog
ends 1 "an address in any module" --db a.db annotate 0x1139

# ---- the sums equal query's; several functions share a local name
ends 1 "two of a name" --db a.db annotate twin
says err.txt 'twin@0x[0-9a-f]* in .*/prog: [1-9][0-9]* samples' "two of a name"
[ "$(grep -c 'twin@0x' err.txt)" = 2 ] || fail "two of a name: $(cat err.txt)"
grep -o 'twin@0x[0-9a-f]*' err.txt >twins.txt
while read -r f; do
	ends 0 "$f" --db a.db annotate "$f" --json
	mv out.txt ann.txt
	ends 0 "query ${f#*@}" --db a.db query --binary=prog -f "${f#*@}" --by=function --json
	want=$(jq '.rows[0].samples' out.txt)
	ends 0 "blocks of ${f#*@}" --db a.db query --binary=prog -f "${f#*@}" --by=block --json
	mv out.txt blocks.txt
	mv ann.txt out.txt
	json "$f: the function's samples" ".samples == $want and .samples > 50"
	json "$f: instructions add up" '([.instructions[].samples] | add) == .samples'
	json "$f: blocks add up" '([.blocks[].samples] | add) == .samples'
	json "$f: percentages add up" '([.instructions[].percent] | add) | . > 99.99 and . < 100.01'
	json "$f: one is hot" '[.instructions[] | select(.hot)] | length >= 1'
	json "$f: schema" '.schema == 1 and .command == "annotate" and .symbol == "twin"'
	[ "$(jq -c '[.blocks[] | select(.samples > 0) | [.address, .samples, .instructions]] | sort' \
		out.txt)" = "$(jq -c '[.rows[] | [.address, .samples, .instructions]] | sort' \
		blocks.txt)" ] || fail "$f: blocks are not query's"
	# The loop runs far more often than it is entered.
	json "$f: the loop is taken" '[.blocks[].taken | select(. != null and . > 0.9)] | length >= 1'
	# Compare with objdump: every instruction at the same address.
	jq -r '.instructions[].address' out.txt | sed 's/^0x//' >ours.txt
	start=$(jq -r .ranges[0].address out.txt)
	end=$((start + $(jq .ranges[0].bytes out.txt)))
	objdump -d --start-address="$start" --stop-address=$end prog |
		sed -nE 's/^ +([0-9a-f]+):\t([0-9a-f]{2} )+ *\t.*/\1/p' >theirs.txt
	cmp -s ours.txt theirs.txt || fail "$f: $(diff ours.txt theirs.txt | head -5)"
done <twins.txt
ends 0 "by address" --db a.db annotate "$(sed -n '1s/.*@//p' twins.txt)" -m prog
ends 0 "func@address" --db a.db annotate "func@$(sed -n '1s/.*@//p' twins.txt)" -m prog
ends 0 "--address" --db a.db annotate --address="$(sed -n '1s/.*@//p' twins.txt)" -m prog

# ---- text: source, inlined functions, marks
one=$(while read -r f; do
	"$BUILD/morph-stats" --db a.db annotate "$f" --json 2>/dev/null |
		jq -r --arg f "$f" 'select(any(.instructions[].source; .file // "" | endswith("one.c"))) | $f'
done <twins.txt)
ends 0 "text" --db a.db annotate "$one"
says out.txt '^twin: [0-9]* samples, ' "text"
says out.txt 'one.c:9 .*for (long i = 0' "source"
says out.txt 'step() inlined, called at one.c:12' "inlined"
says out.txt '^\*' "hot"
says out.txt '^B[0-9].*weight [0-9.]*, count [0-9.]*' "blocks"
says out.txt '-> B[0-9]* (back), taken [0-9.]*%' "branches"
says_not out.txt "$(printf '\033')" "color into a file"
ends 0 "color" --db a.db annotate "$one" --color=always
says out.txt "$(printf '\033')\\[" "color"
ends 0 "AT&T" --db a.db annotate "$one" --no-source
says out.txt '%r' "AT&T"
says_not out.txt 'one\.c:' "no source"
ends 0 "Intel" --db a.db annotate "$one" --intel --no-source
says_not out.txt '%r' "Intel"
ends 2 "a bad limit" --db a.db annotate "$one" -p 101
ends 0 "a limit" --db a.db annotate "$one" -p 5 --no-source
says out.txt '^\.\.\. [0-9]* instructions, [0-9]* samples$' "a limit"
says_not out.txt '; entry' "a limit"
[ "$(awk '/^\.\.\./ { s += $4 } /^[* ] *[0-9.]*% +[0-9]+ / { sub(/^[*]/, ""); s += $2 }
	END { print s }' out.txt)" = "$("$BUILD/morph-stats" --db a.db annotate "$one" --json \
	2>/dev/null | jq .samples)" ] || fail "a limit: samples do not add up: $(cat out.txt)"
touch -d '+1 hour' one.c
ends 0 "a newer source" --db a.db annotate "$one"
says out.txt 'one.c:9$' "a newer source"
says err.txt 'one.c: written after' "a newer source"
touch -d '-1 hour' one.c
ends 3 "no samples" --db a.db annotate idle -m prog
says out.txt '^idle: 0 samples' "no samples"
says err.txt 'no sample of this function' "no samples"
ends 3 "a file that never ran" --db a.db annotate work --binary=plain
says out.txt 'work: 0 samples' "a file that never ran"
mv prog keep
ends 1 "the file is gone" --db a.db annotate "$one"
says err.txt 'prog: No such file' "the file is gone"
ends 0 "the file elsewhere" --db a.db annotate "$one" --binary=keep
cp plain prog
ends 1 "another file" --db a.db annotate "$one" -m prog
says err.txt 'is not the file that was profiled' "another file"
mv keep prog

# ---- names with terminal escapes
objcopy --redefine-sym "idle=$(printf 'ev\033[31mil')" prog evil
"$BUILD/morph-stats" --db a.db annotate "0x$(nm prog | sed -n 's/ T idle$//p')" --binary=evil \
	>out.txt 2>err.txt
says out.txt '^ev\\x1b\[31mil: ' "a name with an escape"
says_not out.txt "$(printf '\033')" "a name with an escape"
ends 1 "a wish with an escape" --db a.db annotate "$(printf 'no\033[31m\nthing')"
says_not err.txt "$(printf '\033')" "a wish with an escape"
[ "$(wc -l <err.txt)" = 1 ] || fail "a wish with an escape: $(cat -v err.txt)"

# ---- a stripped file with separate debug information
address=${one#*@}
"$BUILD/morph-stats" --db a.db annotate "$one" --json --no-source 2>/dev/null |
	jq -c '[.instructions[] | [.address, .text, .samples]]' >want.txt
cp prog full
mkdir elsewhere
objcopy --only-keep-debug prog elsewhere/prog.debug
strip prog
ends 1 "stripped, by name" --db a.db annotate twin -m prog
says err.txt 'give an address' "stripped, by name"
ends 0 "stripped" --db a.db annotate "$address" -m prog --json
jq -c '[.instructions[] | [.address, .text, .samples]]' out.txt | cmp -s - want.txt ||
	fail "stripped: other instructions"
json "stripped" '.symbol == null and all(.instructions[]; .source == null)'
id=$(readelf -n prog | sed -n 's/.*Build ID: //p')
if mkdir -p "/usr/lib/debug/.build-id/${id:0:2}" 2>/dev/null &&
	[ -w "/usr/lib/debug/.build-id/${id:0:2}" ]; then
	debug=/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
	cp elsewhere/prog.debug "$debug"
	ends 0 "separate debug information" --db a.db annotate "$one"
	says out.txt '^twin: ' "its name"
	says out.txt 'one.c:9 ' "its lines"
	rm -f "$debug"
else
	left_out="$left_out /usr/lib/debug"
fi
# A debuginfod server without any file is asked if its address is set, and the listing stays the
# same. eu-addr2line shows that libdebuginfod is installed.
if command -v python3 >/dev/null && command -v eu-addr2line >/dev/null; then
	python3 - >asked.txt 2>/dev/null <<'P' &
import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(16)
print(s.getsockname()[1], flush=True)
while True:
    c = s.accept()[0]
    print("asked", flush=True)
    c.sendall(b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n")
    c.close()
P
	server=$!
	for _ in $(seq 100); do
		[ -s asked.txt ] && break
		sleep 0.1
	done
	ends 0 "without a server" --db a.db annotate "$address" -m prog
	mv out.txt without.txt
	export DEBUGINFOD_URLS="http://127.0.0.1:$(head -n 1 asked.txt)/" DEBUGINFOD_CACHE_PATH=$dir/cache
	says_not asked.txt asked "without a server"
	ends 0 "with a server" --db a.db annotate "$address" -m prog
	cmp out.txt without.txt || fail "with a server: another listing"
	if grep -q asked asked.txt; then
		:
	elif eu-addr2line -e prog "$address" >/dev/null 2>&1 && grep -q asked asked.txt; then
		fail "a server was not asked"
	else
		left_out="$left_out debuginfod"
	fi
	unset DEBUGINFOD_URLS
	kill $server
	wait $server 2>/dev/null
fi
mv full prog

# ---- C++
if ! command -v g++ >/dev/null; then
	left_out="$left_out g++"
else
	g++ -g -O2 -Wl,--build-id cxx.cc -o cxx || exit 1
	sampled b.db cxx 600 ./cxx 40000000
	for f in 'shop::work(long)' _ZN4shop4workEl 'shop::work(long, int)' _ZN4shop4workEli; do
		ends 0 "$f" --db b.db annotate "$f" --json
		json "$f" '.samples > 20 and (.function | startswith("shop::work(long"))'
		json "$f" '([.instructions[].samples] | add) == .samples'
		want=$(jq -r .symbol out.txt)
		got=$(jq .samples out.txt)
		ends 0 "query $want" --db b.db query -m cxx -f "$want" --by=function --json
		json "$f is query's" ".rows[0].samples == $got"
	done
	ends 1 "overloaded" --db b.db annotate shop::work
	says err.txt 'shop::work(long, int)@0x' "overloaded"
	# The code that throws is in the .cold part, which annotate shows.
	ends 0 "the cold part" --db b.db annotate 'shop::work(long, int)'
	if nm cxx | grep -q '_ZN4shop4workEli.cold'; then
		says out.txt '(cold part)' "the cold part"
		says out.txt 'call.*# .*throw' "the cold part"
	fi
	# main may have samples or none.
	"$BUILD/morph-stats" --db b.db annotate main -m cxx --no-source >out.txt 2>err.txt
	says out.txt '# shop::work$' "names of callees"
fi

# ---- an optimised file: its samples count for the original
if [ ! -x "$BUILD/morph-optimize" ]; then
	left_out="$left_out morph-optimize"
else
	sampled c.db plain 600 ./plain 40000000
	"$BUILD/morph-optimize" --db c.db --all --report=none -o fast plain 2>err.txt ||
		fail "morph-optimize: $(cat err.txt)"
	sampled c.db plain 2000 ./fast 40000000
	f=$("$BUILD/morph-stats" --db c.db query --binary=plain --json |
		jq -r '[.rows[] | select(.function == "twin")][0].address')
	ends 0 "the original" --db c.db annotate "$f" --binary=plain --json
	json "the original" '.samples > 50 and .optimised == false'
	total=$(jq .samples out.txt)
	new=$(nm fast | awk '$3 == "twin" { print $1 }' | while read -r a; do
		"$BUILD/morph-stats" --db c.db annotate "0x$a" --binary=fast --json 2>/dev/null |
			jq -r --arg f "$f" --arg a "0x$a" 'select(.blocks[0].original == $f) | $a'
	done)
	[ -n "$new" ] || fail "no copy of $f in fast"
	ends 0 "the optimised one" --db c.db annotate "${new:-0}" --binary=fast --json
	says err.txt 'is optimised; samples are kept for its original' "the optimised one"
	json "the optimised one" ".optimised and .samples > 50 and .samples <= $total"
	json "it has copies" 'any(.instructions[]; .original != null and .original != .address)'
	json "nothing is inferred" 'all(.blocks[]; .count == null and .taken == null)'
	# Each instruction has the text of its original, except branches.
	jq -r '.instructions[] | select(.samples > 0) | .original' out.txt | head -3 >places.txt
	ends 0 "as text" --db c.db annotate "${new:-0}" --binary=fast
	says out.txt 'Original  Instruction' "as text"
	says out.txt '; copy of 0x' "as text"
	ends 0 "its path as a module" --db c.db annotate "$f" -m "$dir/fast"
	says err.txt 'fast: is optimised; its samples are of the original' "its path as a module"
	cp plain keep
	cp fast plain
	ends 0 "in place" --db c.db annotate "${new:-0}" -m plain
	says err.txt 'plain: is the optimised version now' "in place"
	cp keep plain
fi

finish
