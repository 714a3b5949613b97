#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# dladdr() and backtrace_symbols() in moved code: in relinkable builds, exported functions keep
# their names, at the entry and at return addresses. Others have no name, but never a wrong one.
. "$(dirname "$0")/../lib.sh"
scratch dladdr
cc=${CC:-gcc}
need "${cc%% *}"

cat >prog.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
long sink;
__attribute__((noinline)) void say(const char *what, void *at)
{
	Dl_info info;
	int found = dladdr(at, &info);

	printf("%s %s\n", what, found && info.dli_sname ? info.dli_sname : "?");
}
__attribute__((noinline)) void here(void)
{
	/* Callers stay whose callee keeps a copy of its return address in the stack. */
	static void *frame;
	char **names;

	frame = __builtin_return_address(0);
	names = backtrace_symbols(&frame, 1);

	say("return", frame);
	printf("frame %s\n", names && strstr(names[0], "(caller+") ? "caller" : "?");
	free(names);
}
__attribute__((noinline)) long caller(long n)
{
	for (long i = 0; i < n; i++)
		sink += i % 3 ? i * 7 : sink >> 2;
	here();
	if (n == 77)
		abort();
	return sink;
}
int main(int argc, char **argv)
{
	(void)argv;
	for (int i = 0; i < 3; i++)
		caller(1000 + argc);
	say("entry", (void *)caller);
	return 0;
}
C
for pie in -pie -no-pie; do
	# shellcheck disable=SC2086
	$cc -O2 -rdynamic -fPIE $pie -Wl,--emit-relocs prog.c -o prog -ldl || exit 1
	command_ends 0 "relinkable $pie" "$BUILD/morph-optimize" --all prog -o out
	./prog >want.txt
	says want.txt '^return caller$'
	says want.txt '^frame caller$'
	./out >got.txt
	cmp -s want.txt got.txt || fail "relinkable $pie: $(diff want.txt got.txt)"
	# dladdr() names the copy: the symbol's value has changed.
	old=$(nm -D prog | sed -n 's/ T caller$//p') new=$(nm -D out | sed -n 's/ T caller$//p')
	[ -n "$new" ] && [ "$old" != "$new" ] || fail "relinkable $pie: caller was not moved"

	# shellcheck disable=SC2086
	$cc -O2 -rdynamic -fPIE $pie prog.c -o prog -ldl || exit 1
	command_ends 0 "stock $pie" "$BUILD/morph-optimize" --all prog -o out
	./out >got.txt
	says got.txt '^entry caller$' "stock $pie"
	grep -vE '^(return|frame) (caller|\?)$|^entry caller$' got.txt &&
		fail "stock $pie: another function's name"
done

[ $nr_failed = 0 ] || {
	echo "$nr_failed failed"
	exit 1
}
