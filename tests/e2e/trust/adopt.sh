#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What root puts in place was written by root's own programs: not by another user, however well it verifies; a
# training command, which runs as another user, gives counts alone.
. "$(dirname "$0")/lib-trust.sh"
need jq sqlite3 objdump readelf
. "$(dirname "$0")/../manager/lib-manager.sh"
trust_scratch trust-adopt
# Copies that nobody may execute, wherever the programs were built
mkdir bin
cp "$BUILD"/morph "$BUILD"/morph-* "$BUILD"/morphd bin/
BUILD=$dir/bin
keep=$dir
manager_scratch trust-adopt
at_exit 'rm -rf "$dir" "$keep"'
mkdir theirs && chown nobody:nogroup theirs
echo precious >precious
optimize=$BUILD/morph-optimize

# ---- adopt: another user's output, where it lies and copied by root
as_nobody "$optimize" --report=none --lab=stress-layout=3 -o theirs/out prog || fail "nobody's own output"
"$optimize" verify --report=none prog theirs/out || fail "nobody's output does not verify"
command_ends 4 "nobody's output" "$optimize" adopt --backup-dir=backup prog theirs/out
says err.txt "was not written by root's own programs" "nobody's output"
one_line "nobody's output"
cp theirs/out copy
command_ends 4 "a copy of nobody's output" "$optimize" adopt --backup-dir=backup prog copy
cmp prog original || fail "nobody's output: in place"
command_ends 0 "root's output: write" "$optimize" --report=none --all -o own prog
cmp -s own theirs/out && fail "the same bytes, so the test shows nothing"
command_ends 0 "root's output" "$optimize" adopt --report=none --backup-dir=backup prog own
cmp -s prog own || fail "root's output: not in place"

# ---- whoever may read a file can lock it: that keeps nobody from putting the original back
mkfifo locked
as_nobody flock -F prog sh -c 'echo locked; exec sleep 600' >locked &
at_exit "kill $! 2>/dev/null"
read -r _ <locked
flock -n prog true && fail "locked: it is not"
command_ends 0 "locked" "$optimize" restore --report=none --backup-dir=backup prog
cmp -s prog original || fail "locked: the original is not in place"
cp original prog

# ---- and the other way round: a user takes own ones only, or root's
cp prog theirs/prog && chown nobody:nogroup theirs/prog
setpriv --reuid=daemon --regid=daemon --clear-groups bash -c 'cd /tmp && f=$(mktemp /tmp/daemon.XXXXXX) && rm -f "$f" &&
	"$1" --report=none --all -o "$f" "$2" && echo "$f"' _ "$optimize" "$dir/prog" >name || fail "daemon's own output"
other=$(cat name)
command_ends 4 "a third user's output" as_nobody "$optimize" adopt --backup-dir=theirs/backup theirs/prog "$other"
says err.txt 'belongs to another user' "a third user's output"
rm -f "$other"
cmp theirs/prog original || fail "a third user's output: in place"
command_ends 0 "the user's own" as_nobody "$optimize" adopt --report=none --backup-dir=theirs/backup theirs/prog theirs/out
cmp -s theirs/prog theirs/out || fail "the user's own: not in place"

# ---- a training command that plants versions, and links, in the directory that is its own
speed 120
cat >train <<END
#!/bin/sh
there=\$(ls -d $dir/state/*/train)
cp $dir/theirs/out \$there/output
cp $dir/theirs/out \$there/final
ln -s $dir/secret \$there/link
mkdir \$there/folder \$there/folder/inner
exec $dir/prog 3000000
END
chmod 755 train
rule "mode = adopt" "train = $dir/train" "$(by_speed)"
work 0 "trained" --now
state_is adopted "trained"
cmp -s prog theirs/out && fail "trained: nobody's version is in place"
"$optimize" verify --report=none original prog || fail "trained: not an output of the original"
[ "$(./prog 999)" = "$(./original 999)" ] || fail "trained: another output"
[ -z "$(find state -user nobody -name '*.db*')" ] || [ -d state ] || fail "trained: left behind"

# ---- in place of the counts: a file that its user may not read, by a link and by a pipe; no counts at all; noise
echo secret >secret
chmod 600 secret
for how in 'ln -s $secret' 'ln $secret' 'mkfifo' 'cp /bin/true' ':'; do
	forget
	cat >train <<END
#!/bin/sh
secret=$dir/secret
there=\$(ls -d $dir/state/*/train)
(sleep 0.2; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
	rm -f \$there/counts.db; $how \$there/counts.db 2>/dev/null; sleep 0.2; done) >/dev/null 2>&1 &
exec $dir/prog 3000000
END
	chmod 755 train
	work 0 "in place of the counts: $how" --now
	grep -rqs secret state && fail "in place of the counts: $how: copied a secret"
	[ "$(cat secret)" = secret ] || fail "in place of the counts: $how: root's file changed"
	[ "$(./prog 999)" = "$(./original 999)" ] || fail "in place of the counts: $how: another output"
	sleep 1
done

# ---- directories that become links while the worker removes them
cat >swap.c <<'END'
/* swap DIRECTORY TARGET: DIRECTORY/d is a directory and a link to TARGET in turns, until DIRECTORY is gone */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	if (argc != 3 || chdir(argv[1]) || symlink(argv[2], "link"))
		return 1;
	alarm(20);
	mkdir("d", 0755);
	while (!access(argv[1], F_OK)) {
		mkdir("d", 0755);
		close(open("d/f", O_CREAT | O_WRONLY, 0644));
		renameat2(AT_FDCWD, "d", AT_FDCWD, "link", RENAME_EXCHANGE);
		symlink(argv[2], "link");
	}
	return 0;
}
END
gcc -O2 -D_GNU_SOURCE -o swap swap.c || exit 1
cat >train <<END
#!/bin/sh
there=\$(ls -d $dir/state/*/train)
$dir/swap \$there $dir/kept >/dev/null 2>&1 &
exec $dir/prog 3000000
END
mkdir kept
for _ in {1..4}; do
	forget
	touch kept/{a..z}
	work 0 "links in place of directories" --now
	[ "$(ls kept | wc -l)" = 26 ] || fail "links in place of directories: root's files were removed"
done
[ "$(cat precious)" = precious ] || fail "precious"
finish
