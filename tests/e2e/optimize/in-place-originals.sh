#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# After --in-place the path holds the output. Reports find the original in the backup directory, by
# build-id in /usr/lib/debug, or through debuginfod; they never take another file.
. "$(dirname "$0")/../lib.sh"
scratch originals
cc=${CC:-gcc}
need "${cc%% *}" valgrind jq

cat >prog.c <<'C'
#include <stdio.h>
static __attribute__((noinline)) long inner(long n)
{
	long s = 0;
	for (long i = 0; i < n; i++)
		s += i % 3 ? (i * 5) % 11 : -i;
	return s;
}
__attribute__((noinline)) long outer(long n)
{
	long s = 0;
	for (long i = 0; i < 30; i++)
		s += i & 1 ? inner(n) : i;
	return s;
}
int main(void)
{
	long s = 0;
	for (int i = 0; i < 40; i++)
		s += outer(i * 10);
	printf("%ld\n", s);
	return 0;
}
C
# shellcheck disable=SC2086
$cc -O2 -Wl,--build-id,--emit-relocs prog.c -o prog || exit 1
# Apart: an original beside its output is found without a backup.
mkdir apart && cp prog apart/pristine
valgrind -q --tool=callgrind --dump-instr=yes --callgrind-out-file=cg.out ./prog >/dev/null 2>&1 ||
	{ echo "skip: valgrind does not run here"; exit 77; }
ends 0 "import" --db db import cg.out
ends 0 "query of the original" --db db query --by=function --binary=prog
cp out.txt before.txt
says before.txt inner

command_ends 0 "in place" "$BUILD/morph-optimize" --in-place --all --db db --backup-dir "$PWD/kept" \
	"$PWD/prog"
cmp -s prog apart/pristine && fail "nothing was replaced"

# Without the backup the functions have no names, and a message says why.
ends 0 "no backup" --db db --backup-dir "$PWD/none" query --by=function --module=prog
grep -q inner out.txt && fail "no backup: names come from nowhere"
says err.txt "is not the file that was profiled"

# With the backup everything is as before.
for which in --module=prog --binary=prog; do
	ends 0 "query $which" --db db --backup-dir "$PWD/kept" query --by=function $which
	cmp -s out.txt before.txt || fail "query $which: $(diff before.txt out.txt)"
	[ ! -s err.txt ] || fail "query $which says $(cat err.txt)"
done
ends 0 "blocks" --db db --backup-dir "$PWD/kept" query --module=prog --function=inner
says out.txt 'inner+0x'
ends 0 "folded" --db db --backup-dir "$PWD/kept" export --format=folded --module=prog
says out.txt '^prog;inner [0-9]'
ends 0 "fdata" --db db --backup-dir "$PWD/kept" export --format=fdata --binary=prog
says out.txt ' outer '
ends 0 "flame" --db db --backup-dir "$PWD/kept" --json flame --module=prog
json "flame names inner" '[.. | .name? // empty] | index("inner") != null'
ends 0 "heat" --db db --backup-dir "$PWD/kept" --json heat prog
json "heat draws both versions" '.after != null and .before != null'
ends 1 "heat without the original" --db db --backup-dir "$PWD/none" heat prog
says err.txt "is an optimised version; name its original"

# Another file in the original's folder is refused.
folder=$(echo kept/*/)
for f in "$folder"*; do
	case $f in *.json) continue ;; esac
	chmod u+w "$f"
	printf '\314' | dd of="$f" bs=1 conv=notrunc status=none \
		seek=$((0x$(readelf -SW apart/pristine | sed -n 's/^.* \.text *PROGBITS *[0-9a-f]* *\([0-9a-f]*\) .*/\1/p')))
done
ends 0 "damaged backup" --db db --backup-dir "$PWD/kept" query --by=function --module=prog
grep -q inner out.txt && fail "a damaged backup was taken for the original"

# debuginfod from a directory, because the library accepts file: URLs.
id=$(readelf -n apart/pristine | sed -n 's/.*Build ID: //p')
if ldconfig -p | grep -q libdebuginfod.so.1; then
	mkdir -p "server/buildid/$id"
	cp apart/pristine "server/buildid/$id/executable"
	export DEBUGINFOD_CACHE_PATH=$PWD/cache
	DEBUGINFOD_URLS="file://$PWD/server" ends 0 "debuginfod" --db db --backup-dir "$PWD/none" \
		query --by=function --module=prog
	cmp -s out.txt before.txt || fail "debuginfod: $(diff before.txt out.txt)"
	# Without the variable neither servers nor the cache are used.
	ends 0 "no servers" --db db --backup-dir "$PWD/none" query --by=function --module=prog
	grep -q inner out.txt && fail "debuginfod was asked without DEBUGINFOD_URLS"
	# A server that never answers only delays a report.
	if command -v python3 >/dev/null; then
		python3 -c 'import socket,time
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(9)
print(s.getsockname()[1], flush=True)
time.sleep(120)' >port &
		silent=$!
		for _ in 1 2 3 4 5 6 7 8 9 10; do [ -s port ] || sleep 0.2; done
		DEBUGINFOD_CACHE_PATH=$PWD/cache2 DEBUGINFOD_URLS="http://127.0.0.1:$(cat port)" \
			timeout 600 "$BUILD/morph-stats" --db db --backup-dir "$PWD/none" query \
			--by=function --module=prog >out.txt 2>err.txt || fail "silent server: $?"
		kill $silent
		says out.txt prog "silent server"
	fi
	# The functions of a stripped program have the names of its debug file.
	strip prog -o /dev/null 2>/dev/null
	cp apart/pristine prog && objcopy --only-keep-debug prog prog.debug && strip prog
	rm "server/buildid/$id/executable"
	cp prog.debug "server/buildid/$id/debuginfo"
	ends 0 "stripped" --db db query --by=function --binary=prog
	grep -q inner out.txt && fail "stripped: names come from nowhere"
	DEBUGINFOD_CACHE_PATH=$PWD/cache3 DEBUGINFOD_URLS="file://$PWD/server" \
		ends 0 "debug file" --db db query --by=function --binary=prog
	says out.txt inner "debug file"
else
	left_out="libdebuginfod is not installed"
fi
cp apart/pristine prog

# The tree of build-ids, where only root can write.
tree=/usr/lib/debug/.build-id/${id:0:2}
if [ "$(id -u)" = 0 ] && mkdir -p "$tree" 2>/dev/null; then
	: >prog
	cp apart/pristine "$tree/${id:2}"
	ends 0 "tree of build-ids" --db db query --by=function --module=prog
	rm "$tree/${id:2}"
	cmp -s out.txt before.txt || fail "tree of build-ids: $(diff before.txt out.txt)"
	cp apart/pristine prog && strip prog
	objcopy --only-keep-debug apart/pristine "$tree/${id:2}.debug"
	ends 0 "debug file in the tree" --db db query --by=function --binary=prog
	rm "$tree/${id:2}.debug"
	rmdir "$tree" 2>/dev/null
	says out.txt inner "debug file in the tree"
else
	left_out="${left_out:+$left_out; }$tree cannot be written"
fi

[ $nr_failed = 0 ] || {
	echo "$nr_failed failed"
	exit 1
}
[ -z "$left_out" ] || {
	echo "skip: $left_out; the rest passed"
	exit 77
}
