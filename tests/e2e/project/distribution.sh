#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# scripts/check/distribution sees what a rewritten file prints otherwise, ends otherwise with, or breaks; a file that is the
# same passes, and is not run again. The root and the package are made here, without network.
. "$(dirname "$0")/../lib.sh"
need python3 gcc dpkg-deb unshare setpriv sqlite3
[ "$(id -u)" = 0 ] || { echo "skip: needs root"; exit 77; }
grep -qxE 'core(\.%p)?' /proc/sys/kernel/core_pattern || { echo "skip: kernel.core_pattern is not core"; exit 77; }
scratch distribution
base=$dir/cache/distribution/base
export MORPH_CACHE=$dir/cache

# ---- a root with shells and dpkg, and a package with two programs
mkdir -p "$base"/{usr/{bin,lib,lib64,sbin},etc,proc,sys,dev/{pts,shm},home/test,tmp,var/{tmp,cache/apt/archives,lib/dpkg/{info,updates}}}
for link in bin lib lib64 sbin; do ln -s usr/$link "$base/$link"; done
chmod 1777 "$base"/{tmp,var/tmp}
for tool in bash sh dpkg dpkg-query mkdir chown head; do
	path=$(readlink -f "$(PATH=/usr/bin:/bin command -v $tool)")
	cp "$path" "$base/usr/bin/$tool"
	ldd "$path" | grep -o '/[^ ]*' | while read -r lib; do mkdir -p "$base${lib%/*}" && cp -L "$lib" "$base$lib"; done
done
echo 'test:x:1000:1000::/home/test:/bin/sh' >"$base/etc/passwd"
echo 'test:x:1000:' >"$base/etc/group"
: >"$base/var/lib/dpkg/status"
printf '#!/bin/sh\necho "greet:"\necho "  Installed: 1"\necho "  Candidate: 1"\n' >"$base/usr/bin/apt-cache"
chmod +x "$base/usr/bin/apt-cache"
mkdir -p greet/{DEBIAN,usr/bin}
cat >greet.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
char status[] = "status-3";
__attribute__((noinline)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(int argc, char **argv) {
	unsigned char r[30] = { 0 };
	puts("hello from greet");
	printf("%d\n", fib(argc + 9));
	if (argc == 2 && getrandom(r, sizeof(r), 0) == sizeof(r))
		for (int i = 0; i < 30; i++)
			putchar('g' + r[i] % 20);
	if (status[7] == 'x')
		abort();
	return status[7] - '0';
}
C
gcc -O2 -o greet/usr/bin/greet greet.c || exit 1
# Without unwind information: refused.
gcc -O2 -nostdlib -static -fno-asynchronous-unwind-tables -Wl,--no-eh-frame-hdr -o greet/usr/bin/bare -x c - <<<'void _start(void) { for (;;) ; }' || exit 1
printf 'Package: greet\nVersion: 1\nArchitecture: amd64\nMaintainer: x\nDescription: y\n' >greet/DEBIAN/control
dpkg-deb --root-owner-group -b greet greet.deb >/dev/null && dpkg --root="$base" -i greet.deb >/dev/null 2>dpkg.txt || { cat dpkg.txt; exit 1; }
cat >list <<'L'
# A comment.
greet
	greet a b; echo status $?
	greet a b c | head -n 1
L
# Here only the status is the same each time.
printf 'greet\n\texec greet random\n' >varies

# check STATUS WHAT BUILD OPTION...
check() {
	BUILD=$3 command_ends "$1" "$2" timeout 300 "$root/scripts/check/distribution" --tests=stated --list=list "${@:4}" greet
}
check 0 "the same" "$BUILD"
for way in all inline count; do
	says out.txt "greet, stated, $way: tests: {'same': 1}, files: {'refused': 1, 'rewritten': 1}"
done
check 0 "again" "$BUILD"
[ ! -s out.txt ] || fail "a run in the database ran again: $(cat out.txt)"
command_ends 0 report "$root/scripts/check/distribution" --report
says out.txt '^| all | 3 | 1 | 1 | 0 | 0 | 1 | 1 | 0 | '
says out.txt '^| no unwind information\|^| .*unwind.* | 1 | '
[ "$(sqlite3 cache/distribution/runs.db "SELECT DISTINCT detail FROM test")" = exact ] || fail "not compared exactly"

# ---- another commit: only what it writes otherwise is tested again; a result names the commit that was tested
# plant COMMIT SCRIPT: an editor that says so, and whose outputs sed changes
plant() {
	mkdir -p "$1"
	cat >"$1/morph-optimize" <<P
#!/bin/bash
[ "\$1" != --version ] || { echo "morph-optimize $1"; exit; }
"$BUILD/morph-optimize" "\$@" || exit
sed -i '$2' "\${@: -1}"
P
	chmod +x "$1/morph-optimize"
}
commit=$("$BUILD/morph-optimize" --version | cut -d' ' -f2)
runs() { sqlite3 cache/distribution/runs.db "SELECT morph, also, count(*) FROM run WHERE way != 'original' GROUP BY morph, also ORDER BY id"; }
plant next ''
check 0 "the same bytes, by another commit" "$PWD/next"
for way in all inline count; do
	says out.txt "greet, stated, $way: the 2 files are those of a run before: kept"
done
! grep -q 'tests:' out.txt || fail "tests ran again: $(cat out.txt)"
[ "$(runs)" = "$commit|next|3" ] || fail "another commit that writes the same: $(runs)"
command_ends 0 export "$root/scripts/check/distribution" --export results
[ "$(grep -c "^greet	1	stated	[a-z]*	3	[0-9a-f]*	[0-9a-f]*	$commit	.*	stated=same$" results)" = 3 ] || fail "exported: $(cat results)"
# On another machine, without the database.
mv cache/distribution/runs.db before.db
check 0 "results of another machine" "$PWD/next" --results=results
says out.txt "greet, stated, all: the 2 files are those of a run before: kept"
! grep -q 'tests:' out.txt || fail "tests ran again: $(cat out.txt)"
[ "$(runs)" = "$commit|next|3" ] || fail "results of another machine: $(runs)"
sed 's/greet a b;/greet a b x;/' list >other-list
check 0 "another test" "$PWD/next" --results=results --list=other-list --ways=all
says out.txt "greet, stated, all: tests: {'same': 1}"
plant third 's/hello from greet/hello from greet/;s/GCC: (/GCC: [/'
check 0 "other bytes" "$PWD/third" --results=results --ways=all
says out.txt "greet, stated, all: tests: {'same': 1}"
mv before.db cache/distribution/runs.db

# ---- an editor whose outputs differ: in what they print, in their status, in that they crash
plant words 's/hello from/hallo from/'
plant status 's/status-3/status-4/'
plant crash 's/status-3/status-x/'
check 1 "other words" "$PWD/words" --ways=all
says out.txt "DIFFERENT: greet: all: stated: out, line 1: \[b'hallo from greet'\] instead of \[b'hello from greet'\]"
check 1 "other words, known" "$PWD/words" --ways=all
check 1 "another status" "$PWD/status" --ways=count
says out.txt "DIFFERENT: greet: count: stated: out, line 3: \[b'status 4'\] instead of \[b'status 3'\]"
check 1 "a crash" "$PWD/crash" --ways=inline
says out.txt "DIFFERENT: greet: inline: stated: core files: 1 instead of 0"
check 1 "only the status" "$PWD/status" --ways=all --list=varies
says out.txt "DIFFERENT: greet: all: stated: status 4 instead of 3"
check 0 "other words where the output varies" "$PWD/words" --ways=count --list=varies
command_ends 0 report "$root/scripts/check/distribution" --report
says out.txt '^| greet | 1 | stated | 1 | 2 | 0 | '
finish
