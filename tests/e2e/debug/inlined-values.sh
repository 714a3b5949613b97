#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Functions that save registers or use the stack, in place of calls, in one piece and in two: at each instruction of this
# code, gdb shows the original's frames, and each variable of the calling functions has the original's value or is
# optimized out.
# timeout: 900
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/e2e/debug/lib-readers.sh
. "$root/tests/e2e/debug/lib-readers.sh"
scratch inlined-values
need jq python3
here=$root/tests/e2e/debug

cat >callee.c <<'C'
/* Saves registers. */
__attribute__((noinline)) unsigned long saves(unsigned long a, const unsigned long *p, int n)
{
	unsigned long x[7];

	for (int i = 0; i < 7; i++)
		x[i] = p[i] ^ a;
	for (int i = 0; i < n; i++) {
		x[0] += x[1] * a;
		x[1] ^= x[2] + (unsigned int)n;
		x[2] += x[3] * 3;
		x[3] ^= x[4];
		x[4] += x[5] << 3;
		x[5] ^= x[6] >> 2;
		x[6] += x[0];
	}
	return x[0] ^ x[1] ^ x[2] ^ x[3] ^ x[4] ^ x[5] ^ x[6];
}
/* Lowers the stack pointer. */
__attribute__((noinline)) unsigned long array(unsigned long a, unsigned int n)
{
	volatile unsigned char bytes[200];

	for (unsigned int i = 0; i < 200; i += 64)
		bytes[i] = (unsigned char)(a >> (i & 31));
	if (n % 3 == 0)
		return bytes[n % 200 & 192];
	return (unsigned long)bytes[n % 200 & 192] + bytes[(n + 7) % 200 & 192];
}
/* Several returns. */
__attribute__((noinline)) unsigned long several(unsigned long a, unsigned long b)
{
	if (a % 5 == 0)
		return b;
	if (a & 1)
		return a * 7 + b;
	return a ^ b;
}
/* Another compiler's function would change all vectors. */
__attribute__((noinline)) double mean(const double *p, int n)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += p[i] * (i + 1);
	return sum / n;
}
C
cat >caller.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#ifdef __cplusplus
extern "C" {
#endif
unsigned long saves(unsigned long a, const unsigned long *p, int n);
unsigned long array(unsigned long a, unsigned int n);
unsigned long several(unsigned long a, unsigned long b);
double mean(const double *p, int n);
#ifdef __cplusplus
}
#endif
struct pair {
	long first, second;
};
__attribute__((noinline)) unsigned long work(unsigned long n, struct pair pair, const char *text)
{
	unsigned long keep = n * 3 + 1, sum = 0, words[7], twice = n * 2;
	const char *at = text;

	for (int i = 0; i < 7; i++)
		words[i] = n + (unsigned long)i;
	for (unsigned long i = 0; i < n; i++) {
		unsigned long local = i ^ keep;

		sum += saves(i, words, (int)(i & 7));
		if (i & 1) {
			unsigned long inner = array(sum, (unsigned int)i);

			sum ^= several(inner, local);
			sum += inner * (unsigned long)pair.second;
		}
		sum += local * twice + (unsigned long)*at;
		at += at[1] ? 1 : 0;
	}
	return sum + keep + (unsigned long)pair.first;
}
__attribute__((noinline)) double floats(int n)
{
	double sum = 0.5, half = n / 2.0, values[4] = {1, 2, half, sum};
	float small = (float)n;

	for (int i = 1; i <= n; i++) {
		sum += mean(values, i & 3 ? i & 3 : 4) * half + (double)several((unsigned long)i, 3);
		values[i & 3] += small;
	}
	return sum;
}
#ifndef __cplusplus
/* The size of an array */
__attribute__((noinline)) unsigned long sized(int n)
{
	unsigned long row[n + 7], sum = 0;

	for (int i = 0; i < n + 7; i++)
		row[i] = (unsigned long)i * 3;
	for (int i = 0; i < n; i++)
		sum += saves((unsigned long)i, row, i) + row[i];
	return sum;
}
#else
static unsigned long sized(int n) { return (unsigned long)n; }
#endif
int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 4;
	struct pair pair = {n + 1, n + 2};
	unsigned long sum = work((unsigned long)n, pair, "a text of some length");

	printf("%lu %.3f %lu\n", sum, floats(n), sized(n));
	return (int)(sum & 1) + n;
}
C

# values NAME OUT LEAST: stops at each instruction in place of calls; at LEAST times at least, a variable has its value.
values() {
	local name=$1 out=$2 least=$3 dyn=0 file
	readelf -h "$name" | grep -q DYN && dyn=1
	"$moved" "$out" --inlined "$name" >places || fail "$out: its code in place of calls"
	awk '{ print $2, $2, $3 }' places | sort -u >was.places
	cp places now.places
	# Addresses in the stack depend on the length of the program's name.
	mkdir -p was now
	cp "$name" was/program
	cp "$out" now/program
	for file in was now; do
		VISITS=2 VALUES=$file.values PLACES=$file.places DYN=$dyn ARGS=4 CALLED=$([ $file = was ] && echo 1) \
			timeout 120 gdb -q -nx -batch -x "$here/inlined-values.py" \
			./$file/program >gdb.txt 2>&1 ||
			fail "$out: gdb: $(tail -n 3 gdb.txt)"
	done
	python3 - "$least" >compared.txt <<'PY' || fail "$out: $(head -n 5 compared.txt)"
import sys
def read(file):
    return {tuple(w[:3]): (w[3].split(","), dict(x.split("=", 1) for x in w[4:] if "=" in x))
            for w in map(str.split, open(file))}
was, now = read("was.values"), read("now.values")
same = lost = 0
wrong = [f"at {k}: met only once" for k in set(was) ^ set(now)]
# At the first instruction of each piece of code, gdb shows the calling function alone, as if the call were still to come.
places = [[int(x, 16) for x in line.split()] for line in open("places")]
firsts = {(f"{old:x}", f"{call:x}") for at, old, call in places
          if not any(c == call and at - 15 <= a < at for a, _, c in places)}
for key in sorted(set(was) & set(now)):
    frames, old = was[key]
    if now[key][0] != frames and not (key[:2] in firsts and now[key][0] == frames[1:]):
        wrong.append(f"at {key}: the frames {now[key][0]} instead of {frames}")
    for name, value in now[key][1].items():
        same += value == old.get(name) and value != "?"
        lost += value == "?" and old.get(name) != "?"
        if value not in ("?", old.get(name)):
            wrong.append(f"at {key}: {name} is {value} instead of {old.get(name)}")
    wrong += [f"at {key}: no {name}" for name in old if name not in now[key][1]]
if same < int(sys.argv[1]):
    wrong.append(f"only {same} values")
print(*wrong[:5] or [f"{len(now)} stops, {same} values, {lost} optimized out"], sep="\n")
sys.exit(bool(wrong))
PY
	[ -z "${MORPH_VERBOSE:-}" ] || echo "$out: $(head -n 1 compared.txt)"
}

# check NAME LEAST COMPILER FLAGS...
check() {
	local name=$1 least=$2 seed
	shift 2
	"$@" -w -o "$name" caller.c callee.o 2>cc.err || { echo "note: $name: $(head -n 1 cc.err)"; return; }
	for seed in 7 11; do
		command_ends 0 "$name.$seed" "$BUILD/morph-optimize" --all --stress-inline=$seed --report=json \
			-o "$name.$seed" "$name"
		jq -e '.code.inlined >= 3 and .debug.inlined == .code.inlined and .debug.units_left == 0' \
			out.txt >/dev/null || fail "$name.$seed: $(jq -c '.code.inlined, .debug' out.txt)"
		[ "$("./$name" 9)" = "$("./$name.$seed" 9)" ] || fail "$name.$seed: another output"
		no_new_errors "$name" "$name.$seed"
		values "$name" "$name.$seed" "$least"
	done
}

# compile COMPILER FLAGS: the called functions
compile() { "$@" -w -c -o callee.o callee.c; }

for version in ${VERSIONS-5 4}; do
	compile gcc -O2 -g "-gdwarf-$version"
	check "g$version" 1000 gcc -O2 -g "-gdwarf-$version"
	# Locations of whole scopes
	check "single$version" 1000 gcc -O2 -fno-var-tracking -g "-gdwarf-$version"
	check "gxx$version" 500 g++ -x c++ -O2 -g "-gdwarf-$version" -x none
	has clang || continue
	compile clang -O2 -g "-gdwarf-$version"
	check "c$version" 0 clang -O2 -g "-gdwarf-$version"
	check "cframe$version" 0 clang -O1 -fno-omit-frame-pointer -g "-gdwarf-$version"
done
compile gcc -O2 -g
check unoptimised 1000 gcc -O0 -g
check frame 1000 gcc -O2 -fno-omit-frame-pointer -fno-pie -no-pie -g
finish
