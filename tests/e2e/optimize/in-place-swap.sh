#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-optimize adopt: outputs of all kinds of one original take each other's place, by one rename, and the
# original comes back from each of them. What was proved when it was written need not be proved again, but only the
# same bytes, and only in place of the same original.
. "$(dirname "$0")/../lib.sh"
need gcc jq objdump readelf
dir=$(mktemp -d /tmp/in-place-swap.XXXXXX) || exit 1 # which another user can reach
chmod 755 "$dir"
at_exit 'rm -rf "$dir"'
cd "$dir" || exit 1
gcc -O1 -o kill-at "$root/tests/tools/kill_at.c" || exit 1
optimize=$BUILD/morph-optimize
is_root=$([ "$(id -u)" = 0 ] && echo 1)
export XDG_STATE_HOME=$dir/home # of users other than root

cat >prog.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static const char name[] = "the first program";
__attribute__((noinline)) static unsigned step(unsigned x)
{
	switch (x & 7) {
	case 0: return x * 3;
	case 1: return x - 7;
	case 2: return x / 5;
	case 3: return x ^ 0x55;
	case 4: return x % 9;
	default: return x + 1;
	}
}
static void *work(void *arg)
{
	unsigned x = 0;
	for (int i = 0; i < 1000; i++)
		x += step(x + i);
	*(unsigned *)arg = x;
	return NULL;
}
int main(void)
{
	pthread_t thread;
	unsigned x = 0, y = 0;

	pthread_create(&thread, NULL, work, &x);
	pthread_join(thread, NULL);
	work(&y);
	printf("%s %u %u\n", name, x, y);
	return 0;
}
END
gcc -O2 -Wl,--emit-relocs -o original prog.c -lpthread || exit 1
touch -d '2001-02-03 04:05:06.789' original
want=$(./original)

# ---- each kind has one name; verify says which a file is, and refuses others
outputs=
output() { # KIND OPTIONS...
	"$optimize" "${@:2}" --all --report=none -o "$1" original || fail "$1"
	outputs="$outputs $1"
	command_ends 0 "verify $1" "$optimize" verify --json original "$1"
	json "verify $1" ".kind == \"$1\""
	command_ends 0 "verify $1" "$optimize" verify original "$1"
	says out.txt "^  kind       $1\$" "verify $1"
}
output layout
for kind in pep calls audit; do output $kind instrument --kind=$kind; done
output edges instrument --kind=edges,atomic
output edges+threads instrument --kind=edges,threads
for kind in $outputs; do
	for want_kind in $outputs; do
		command_ends $([ $kind = $want_kind ] && echo 0 || echo 4) "$kind as $want_kind" \
			"$optimize" verify --report=none --kind=$want_kind original $kind
	done
	command_ends 0 "$kind of several" "$optimize" verify --report=none --kind="$kind,layout" --kind=calls original $kind
done
for bad in none edges, ,edges "" pep,poll layout,none; do
	command_ends 2 "--kind=$bad" "$optimize" verify --kind="$bad" original edges
	command_ends 2 "--kind=$bad" "$optimize" adopt --kind="$bad" original edges
done

# ---- adopt takes a layout alone, unless it is told otherwise
adopt() { # STATUS WHAT ARGUMENTS...
	command_ends "$1" "$2" "$optimize" adopt --backup-dir=bk "${@:3}"
}
state() {
	stat -c '%a %u %g' "$1"
	! command -v getfattr >/dev/null || getfattr -d -e hex -m - "$1" 2>/dev/null | grep -v '^#' | sort
}
cp --preserve=timestamps,mode original prog
chmod 751 prog
setfattr -n user.note -v 'some thing' prog 2>/dev/null || left_out="$left_out attributes;"
[ -z "$is_root" ] || {
	chown 1234:2345 prog
	setcap cap_net_raw+ep prog 2>/dev/null || left_out="$left_out capabilities;"
}
before=$(state prog)
for kind in $outputs; do
	[ $kind = layout ] || {
		adopt 4 "$kind without --kind" prog $kind
		says err.txt "is of kind $kind, which adopt takes only with --kind=$kind\$" "$kind without --kind"
		one_line "$kind without --kind"
		adopt 4 "$kind as another" --kind=layout prog $kind
	}
	adopt 4 "$kind as another" --proved --kind="$([ $kind = calls ] && echo edges,pep || echo calls)" prog $kind
	cmp prog original || fail "$kind: refused, and in place"
done

# ---- each takes the place of each
in_place() { # KIND WHAT
	cmp prog "$1" || fail "$2: not in place"
	[ "$(state prog)" = "$before" ] || fail "$2: other attributes: $(state prog)"
	[ "$(./prog)" = "$want" ] || fail "$2: prints $(./prog)"
	[ "$(find . -name '.morph*' -o -name '*.new')" = "" ] || fail "$2: left behind"
}
for a in $outputs; do
	for b in $outputs; do
		adopt 0 "$a" --json --proved --kind=$a prog $a
		json "$a" ".kind == \"$a\" and .proved_again == false"
		in_place $a "$a"
		adopt 0 "$b in place of $a" --json --proved --kind=$b,$a prog $b
		json "$b in place of $a" ".again and .replaced == $([ $a = $b ] && echo false || echo true)"
		in_place $b "$b in place of $a"
	done
	adopt 0 "$a" --proved --kind=$a prog $a
	command_ends 0 "restore from $a" "$optimize" restore --report=none --backup-dir=bk prog
	in_place original "restore from $a"
	[ "$(stat -c %.Y prog)" = "$(stat -c %.Y original)" ] || fail "restore from $a: another time"
done
[ "$(find bk -type f | wc -l)" = 2 ] || fail "the original is kept twice: $(find bk -type f)"

# ---- other names: refused, or left with the bytes that were there
adopt 0 "before other names" --proved --kind=edges prog edges
ln prog second
adopt 4 "two names" --proved prog layout
says err.txt 'second is the same file (a hard link).*--break-links' "two names"
adopt 0 "two names" --proved --break-links prog layout
cmp prog layout && cmp second edges || fail "two names: the wrong one"
rm second
command_ends 0 "restore, two names" "$optimize" restore --report=none --backup-dir=bk prog

# ---- proved: again if it is not asked for, and if the bytes or the original are others
adopt 0 "not asked for" --json prog layout
json "not asked for" '.proved_again'
adopt 0 "a copy" --report=none --kind=edges prog edges
cp layout copy
adopt 0 "a copy" --json --proved prog copy
json "a copy" '.proved_again == false'
command_ends 0 "restore, a copy" "$optimize" restore --report=none --backup-dir=bk prog
# Another original with the same build-id and the same code, of which a string differs
sed 's/the first program/the other program/' <original >other
cmp -s original other && fail "the other original is the same"
cp other other.prog
for kind in layout edges; do
	adopt 4 "another original" --proved --kind=$kind other.prog $kind
	cmp other other.prog || fail "another original: $kind is in place"
done
says err.txt 'verify: ' "another original"
# The bytes in place are an output of the one, and the output is of the other
"$optimize" --all --report=none -o other.layout other || fail "other.layout"
adopt 0 "the other's" --proved --json other.prog other.layout
json "the other's" '.proved_again == false'
adopt 4 "another original in the backup" --proved other.prog layout
cmp other.prog other.layout || fail "another original in the backup: in place"
cp layout changed
printf 'X' | dd of=changed bs=1 seek=$(($(stat -c %s changed) - 1)) conv=notrunc status=none
cmp -s layout changed && printf 'Y' | dd of=changed bs=1 seek=$(($(stat -c %s changed) - 1)) conv=notrunc status=none
adopt 4 "changed" --proved prog changed
cmp prog original || fail "changed: in place"

# ---- a user's own list: the same, and what it does not say is proved
if [ -n "$is_root" ] && command -v setpriv >/dev/null; then
	mkdir user home && chown nobody user home
	as_user() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }
else
	mkdir user
	as_user() { "$@"; }
fi
if cp original layout user/ && as_user test -x "$optimize"; then
	[ -z "$is_root" ] || chown nobody:nogroup user/*
	user_adopts() { # WHAT AGAIN FILE
		command_ends 0 "$1" as_user "$optimize" adopt --backup-dir=user/bk --proved --kind=layout,edges --json user/original "$3"
		json "$1" ".proved_again == $2"
		cmp user/original "$3" || fail "$1: not in place"
	}
	list=home/morph/backup/outputs
	[ -n "$is_root" ] && rm -rf home/morph
	user_adopts "no list" true user/layout
	as_user "$optimize" instrument --kind=edges,plain --all --report=none -o user/edges original || fail "user/edges"
	as_user "$optimize" --lab=stress-layout=3 --report=none -o user/stress original || fail "user/stress"
	[ -s $list ] || fail "no list"
	user_adopts "own list" false user/edges
	user_adopts "own list" false user/stress
	# a line that a full disk cut, in which the next one must not end up
	printf '%s' "$(head -c 70 $list)" >>$list
	nr=$(wc -l <$list)
	as_user "$optimize" --lab=stress-layout=4 --report=none -o user/cut original || fail "user/cut"
	[ "$(wc -l <$list)" = $((nr + 1)) ] || fail "a line was added behind a torn one: $(cat $list)"
	user_adopts "a torn list" false user/cut
	as_user "$optimize" --lab=stress-layout=4 --report=none -o user/cut original || fail "user/cut"
	[ "$(wc -l <$list)" = $((nr + 1)) ] || fail "the same line twice"
	# an older line without a proof, a kind that is not known, a list that others may write
	cp $list list
	cut -c1-64 list >$list
	user_adopts "no proof" true user/edges
	sed 's/[^ ]*$/newer/' list >$list
	user_adopts "an unknown kind" true user/stress
	cat list >$list
	chmod 777 home/morph/backup
	user_adopts "others may write the list" true user/edges
	chmod 700 home/morph/backup
	user_adopts "own list again" false user/stress
	command_ends 0 "restore, a user" as_user "$optimize" restore --report=none --backup-dir=user/bk user/original
	cmp user/original original || fail "restore, a user"
else
	left_out="$left_out another user: $BUILD cannot be entered;"
fi

# ---- killed before each system call that changes files: the path has one of the two, and the original comes back
cp --preserve=timestamps,mode original prog
total=0
for swap in "original edges" "edges layout" "layout edges+threads"; do
	set -- $swap
	for ((n = 1; ; n++)); do
		cmp -s prog original || "$optimize" restore --report=none --backup-dir=bk prog || fail "$swap, $n: not restored"
		cmp -s prog original || fail "$swap, $n: another file came back"
		[ $1 = original ] || adopt 0 "$swap, $n" --proved --kind=$1 prog $1
		./kill-at $n "$optimize" adopt --backup-dir=bk --proved --report=none --kind=$2 prog $2 2>err.txt
		status=$?
		cmp -s prog $1 || cmp -s prog $2 || fail "$swap, killed at $n: neither file"
		[ "$(./prog)" = "$want" ] || fail "$swap, killed at $n: prints $(./prog)"
		[ $status = 137 ] || break
		total=$((total + 1))
	done
	[ $status = 0 ] || fail "$swap: status $status: $(cat err.txt)"
	[ $n -gt 5 ] || fail "$swap: only $n points"
	cmp prog $2 || fail "$swap: not in place"
done
[ "$(find . -name '.morph*' -o -name '*.new')" = "" ] || fail "killed: left behind"
echo "killed at $total points"
finish
