#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files of counts of several users in one directory that all may write: each user's programs count into the user's
# own file, and do what they always do, whatever others put there and whatever the file system lacks.
. "$(dirname "$0")/lib-trust.sh"
need od paste awk
trust_scratch trust-users
cat >prog.c <<'END'
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static unsigned step(unsigned x)
{
	return x % 3 == 0 ? x / 3 : x % 2 ? 3 * x + 1 : x / 2;
}
int main(int argc, char **argv)
{
	unsigned x = 0;
	for (int i = 0; i < atoi(argv[argc - 1]); i++)
		x += step(x + i);
	printf("%u\n", x);
	return 0;
}
END
gcc -O1 -static -Wl,--emit-relocs -o prog prog.c || gcc -O1 -Wl,--emit-relocs -o prog prog.c || exit 1
want=$(./prog 5000)
mkdir -m 1777 counts
command_ends 0 instrument "$BUILD/morph-optimize" instrument --kind=edges,atomic --all --report=none --counts="$dir/counts/%u" \
	-o out prog

# words FILE: its counters, one a line
words() {
	od -An -v -td8 -w8 -j 4096 "$1"
}

# In libc, some branches depend on whether a string ends near the end of a page. So all processes get the same addresses.
run=(setarch -R ./out)

# as_before WHAT [COMMAND...]: the program prints what it always prints
as_before() {
	local what=$1 got status=0
	shift
	got=$("$@" "${run[@]}" 5000 2>&1) || status=$?
	[ "$status $got" = "0 $want" ] || fail "$what: status $status: $got"
}

# ---- a file for each user, who alone can use it
nobody=$(id -u nobody)
as_before root
as_before nobody as_nobody
[ "$(stat -c '%u %a %h' counts/0 "counts/$nobody" | paste -sd ' ')" = "0 600 1 $nobody 600 1" ] ||
	fail "the files: $(stat -c '%n %u %a %h' counts/*)"
words counts/0 >once
words "counts/$nobody" | cmp -s - once || fail "two users count differently"
[ "$(awk '$1' once | wc -l)" -gt 5 ] || fail "nothing was counted"

# ---- 200 processes at the same time, none of which finds a file: each of them counts
rm counts/0
for _ in {1..200}; do "${run[@]}" 5000 >>many.txt & done
wait
[ "$(sort many.txt | uniq -c | tr -s ' ')" = " 200 $want" ] || fail "200 processes: $(sort many.txt | uniq -c)"
words counts/0 | paste - once >both
awk '$1 != 200 * $2 { print; bad = 1 } END { exit bad }' both >wrong.txt || fail "200 processes: $(head -n 3 wrong.txt)"

# ---- what another user, who may write the directory, puts where root's file should be
cp counts/0 good && chmod 644 good
size=$(stat -c %s good)
# Without the sticky bit the kernel leaves it to the program to refuse another user's file.
for how in "cp $dir/good" "cp --no-preserve=mode $dir/good" "truncate -s $size" "cp /dev/null" "mkfifo -m 666" mkdir "ln -s $dir/precious" "ln -s $dir/rootdir/new" \
	"ln -s /dev/zero" "ln -s $dir/counts/$nobody"; do
	for mode in 0777 1777; do
		chmod $mode counts
		rm -rf counts/0
		# shellcheck disable=SC2086
		as_nobody $how counts/0 || fail "$how"
		[ -L counts/0 ] || [ -d counts/0 ] || chmod "$([[ $how != *preserve* ]] && echo 666 || echo 600)" counts/0
		before=$(stat -c '%s %Y %i' counts/0 "counts/$nobody" && cksum "counts/$nobody")
		as_before "$how, $mode"
		[ "$(stat -c '%s %Y %i' counts/0 "counts/$nobody" && cksum "counts/$nobody")" = "$before" ] || fail "$how, $mode: written to"
		untouched "$how, $mode"
	done
done

# ---- a file of root's own, which others could open, or which has another name
for how in "chmod 604" "chmod 660" "chmod 622"; do
	rm -rf counts/0
	cp good counts/0 && $how counts/0
	as_before "$how"
	cmp -s good counts/0 || fail "$how: counted"
done
rm -rf counts/0
cp good other && chmod 600 other && ln other counts/0
as_before "a second name"
cmp -s good other || fail "a second name: counted"
rm -f counts/0 other

# ---- limits: no directory, no space for all counters, a file system that is read-only, a file that may not grow
mv counts away
as_before "no directory"
mv away counts
chmod 755 counts
as_before "a directory that may not be written" as_nobody
chmod 1777 counts
rm -f counts/*
# shellcheck disable=SC2016 # It is run by another shell.
as_before "a limit on files" bash -c 'ulimit -f 1; "$@"' _
[ ! -s counts/0 ] || fail "a limit on files: $(stat -c %s counts/0)"
rm -f counts/*
mounted() { # OPTIONS SCRIPT: run it with another file system at counts
	unshare -m bash -c 'mount --make-rprivate / && mount -t "$1" -o "$2" none counts && shift 2 && eval "$@"' _ "$@" 2>err.txt
}
if mounted tmpfs size=64k true; then
	pages=$((size / 4096))
	[ "$pages" -ge 2 ] || fail "a file of $pages pages"
	# shellcheck disable=SC2016
	got=$(mounted tmpfs "size=$(((pages - 1) * 4))k" './out 5000; ./out 5000; [ -z "$(od -An -v -tx8 -j 4096 counts/0 | grep -v " 0* 0*$")" ] && echo none')
	[ "$got" = "$want
$want
none" ] || fail "a full disk: $got, $(cat err.txt)"
	got=$(mounted tmpfs size=1m,mode=1777 './out 5000; stat -c %s counts/0')
	[ "$got" = "$want
$size" ] || fail "a disk with room: $got"
	# There, reserving space beyond a limit raises the signal that growing raises elsewhere.
	got=$(mounted tmpfs size=1m,mode=1777 'ulimit -f 1; ./out 5000; stat -c %s counts/0')
	[ "$got" = "$want
0" ] || fail "a limit on files in memory: $got"
	got=$(mounted tmpfs ro './out 5000; ls counts')
	[ "$got" = "$want" ] || fail "read-only: $got"
	# Where no space can be reserved, a full disk would end the program.
	got=$(mounted ramfs mode=1777 './out 5000; stat -c %s counts/0')
	[ "$got" = "$want
0" ] || fail "no space can be reserved: $got"
else
	left_out="$left_out mounts;"
fi

# ---- another root directory, without /proc and without counts
if ! readelf -l out | grep -q INTERP; then
	mkdir jail && cp out jail/
	command_ends 0 "another root directory" chroot jail /out 5000
	[ "$(cat out.txt)" = "$want" ] || fail "another root directory: $(cat out.txt)"
	mkdir -p "jail$dir/counts"
	command_ends 0 "another root directory" chroot jail /out 5000
	[ "$(words "jail$dir/counts/0" | awk '$1' | wc -l)" -gt 5 ] || fail "another root directory: nothing was counted"
else
	left_out="$left_out another root directory: no static C library;"
fi
finish
