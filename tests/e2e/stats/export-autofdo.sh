#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# AutoFDO: create_llvm_prof reads the text, for every way of linking, and finds the counts of the
# lines. clang compiles with the result without warnings and puts weights on branches. create_gcov
# reads the text too.
. "$(dirname "$0")/lib-export.sh"
need clang valgrind
if ! command -v create_llvm_prof >/dev/null; then
	echo "skip: create_llvm_prof is missing (apt-get install autofdo)"
	exit 77
fi
profdata=$(command -v llvm-profdata || command -v llvm-profdata-14)

cat >"so urce/pro file.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
static __attribute__((noinline)) int rare(int x)
{
	return x * 7 + 3;
}
__attribute__((noinline)) long work(const unsigned char *p, long n)
{
	long s = 0;
	for (long i = 0; i < n; i++) {
		if (p[i] != 0) {
			s += rare(p[i]);
			s ^= p[i] * 3;
		} else {
			s += i ^ 0x55;
		}
	}
	return s;
}
int main(void)
{
	long n = 1 << 14, s = 0;
	unsigned char *p = calloc(n, 1);
	for (long i = 0; i < n; i += 1024)
		p[i] = 1 | i >> 10;
	for (int k = 0; k < 10; k++)
		s += work(p, n);
	printf("%ld\n", s);
	return 0;
}
C
flags="-O2 -gdwarf-4 -fdebug-info-for-profiling"

# Addresses in the profile differ from offsets in the file, in each way of linking differently.
for how in "-no-pie" "-fPIE -pie" "-no-pie -fuse-ld=lld" "-fPIE -pie -fuse-ld=lld"; do
	case $how in *lld*) command -v ld.lld >/dev/null || continue ;; esac
	# shellcheck disable=SC2086
	clang $flags $how "so urce/pro file.c" -o prog || exit 1
	rm -f s.db*
	counted prog s.db
	ends 0 "autofdo" out.txt --db s.db export --format=autofdo --binary=prog
	create_llvm_prof --binary=prog --profiler=text --profile=out.txt --out=text.prof \
		--format=text 2>afdo.txt || fail "$how: create_llvm_prof: $(tail -2 afdo.txt)"
	# The loop's condition runs 163,840 times, the call of rare 160 times. The ratio is 1000 to
	# 1 in both units, because callgrind counted them exactly.
	awk '/^work:/ { work = 1; next } /^[^ ]/ { work = 0 }
		work && $1 == "4:" { loop = $2 } work && $1 == "5:" { call = $2; named = $3 }
		END { exit !(call > 0 && loop > 1000 / 1.1 * call && loop < 1000 * 1.1 * call &&
			named ~ /^rare:/) }' text.prof || fail "$how: counts of lines: $(cat text.prof)"
	create_llvm_prof --binary=prog --profiler=text --profile=out.txt --out=bin.prof \
		--format=binary 2>afdo.txt || fail "$how: create_llvm_prof: $(tail -2 afdo.txt)"
	if [ -n "$profdata" ]; then
		"$profdata" show --sample bin.prof >show.txt 2>&1 ||
			fail "$how: llvm-profdata: $(head -2 show.txt)"
		says show.txt '^Function: work: ' "$how: llvm-profdata"
	fi
	# clang uses the profile: weights on the branch, no warning.
	# shellcheck disable=SC2086
	clang $flags -S -emit-llvm -fprofile-sample-use=bin.prof "so urce/pro file.c" -o with.ll \
		2>warnings.txt || fail "$how: clang: $(head -3 warnings.txt)"
	[ -s warnings.txt ] && fail "$how: clang warns: $(head -3 warnings.txt)"
	says with.ll 'branch_weights' "$how: clang"
	# shellcheck disable=SC2086
	clang $flags $how -fprofile-sample-use=bin.prof "so urce/pro file.c" -o prog2 \
		2>warnings.txt || fail "$how: clang: $(head -3 warnings.txt)"
	[ -s warnings.txt ] && fail "$how: clang warns: $(head -3 warnings.txt)"
	[ "$(./prog2)" = "$(./prog)" ] || fail "$how: wrong output"
	if command -v create_gcov >/dev/null; then
		create_gcov --binary=prog --profiler=text --profile=out.txt --gcov=out.gcov \
			--gcov_version=2 2>afdo.txt || fail "create_gcov: $(tail -2 afdo.txt)"
		dump_gcov --gcov_version=2 out.gcov >gcov.txt 2>&1
		says gcov.txt '^work total:[1-9]' "create_gcov"
	fi
done
finish
