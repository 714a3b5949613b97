#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: files are replaced again and again while others read them
# morph-optimize --in-place and restore: all attributes of a file are kept and the original comes
# back. At every moment, the path holds the old or the new file, complete.
. "$(dirname "$0")/../lib.sh"
need gcc jq strip objdump readelf
scratch inplace
theirs=$(mktemp -d /tmp/inplace.XXXXXX) # a directory that another user can reach
at_exit 'chattr -i "$dir/fixed" 2>/dev/null; rm -rf "$dir" "$theirs"'
gcc -O1 -o kill-at "$root/tests/tools/kill_at.c" || exit 1
optimize=$BUILD/morph-optimize
kill_at=$dir/kill-at
is_root=$([ "$(id -u)" = 0 ] && echo 1)

without() {
	left_out="$left_out, $*"
}

# ends STATUS WHAT ARGS
ends() {
	command_ends "$1" "$2" "$optimize" "${@:3}"
}

# refuses STATUS REGEXP WHAT ARGS...: one line with the reason, and prog is unchanged
refuses() {
	local want=$1 reason=$2 what=$3 sum
	shift 3
	sum=$(cksum <prog)
	ends "$want" "$what" "$@"
	[ "$(wc -l <err.txt)" = 1 ] || fail "$what: $(wc -l <err.txt) lines: $(cat err.txt)"
	says err.txt "^morph-optimize: .*$reason" "$what"
	[ -s out.txt ] && fail "$what: refused, and yet prints a report"
	[ "$sum" = "$(cksum <prog)" ] || fail "$what: refused, and yet changed"
	nothing_left "$what"
}

nothing_left() { # WHAT
	local left
	left=$(find . -name '.morph*' -o -name '*.new')
	[ -z "$left" ] || fail "$1: left behind: $left"
}

gcc -O2 -g -Wl,--emit-relocs -o original "$root/tests/data/pick.c" &&
	gcc -O1 -Wl,--emit-relocs -o newer "$root/tests/data/pick.c" || exit 1
touch -d '2001-02-03 04:05:06.789' original
want=$(./original 12345)
"$optimize" --all --report=none original -o fast || exit 1

runs() { # FILE WHAT
	local got
	got=$("./$1" 12345) || fail "$2: $1 fails"
	[ "$got" = "$want" ] || fail "$2: $1 prints '$got', not '$want'"
}

place="--all --in-place --backup-dir=bk"
back="restore --backup-dir=bk"
fresh() {
	rm -rf prog bk .morph*
	cp --preserve=timestamps,mode original prog
}

# ---- usage, and the documented exit statuses
fresh
for o in "--in-place -o x prog" "--in-place --restore prog" \
	"restore -o x prog" "restore --dry-run prog" "--backup-dir=bk --dry-run prog" \
	"--break-links -o x prog" "--in-place --backup-dir= prog" "--in-place" "restore" \
	"--in-place prog fast" "restore prog fast"; do
	all=--all
	[[ $o != restore* ]] || all=
	# shellcheck disable=SC2086
	ends 2 "$o" $all $o
done
[ -e x ] && fail "a usage error wrote a file"
for n in 0 1 2 3 4; do
	grep -q "^\.It $n\$" "$root/Documentation/morph-optimize.1" || fail "the page has no status $n"
done
sum=$(cksum <prog)
ends 0 "dry run" --all --in-place --backup-dir=bk --dry-run prog
says out.txt '^prog: would be optimised in place (nothing written)' "dry run"
[ -e bk ] && fail "dry run, and yet a backup"
[ "$sum" = "$(cksum <prog)" ] || fail "dry run, and yet changed"
nothing_left "dry run"
ends 3 "no profile" --in-place --backup-dir=bk --db=none.db prog
[ -e bk ] && fail "no profile, and yet a backup"
cmp -s prog original || fail "no profile, and yet replaced"
refuses 1 'No such file' "no such file" $place nowhere
refuses 1 'No such file' "no such file" $back nowhere
echo text >text
refuses 1 'not an ELF' "a text" $place text

# ---- optimised, optimised again, restored
ends 0 "in place" $place prog
says out.txt '^prog: optimised in place$' "in place"
says out.txt '^  original   kept in bk/[0-9a-f]*/[0-9a-f]*$' "in place"
cmp prog fast || fail "in place: not what -o makes"
kept=$(sed -n 's/^  original   kept in //p' out.txt)
cmp "$kept" original || fail "the backup is not the original"
[ "$(stat -c %a "$kept")" = 400 ] || fail "the backup's mode: $(stat -c %a "$kept")"
jq -e '.schema == 1 and .places[0].mode == "0755" and (.places[0].path | endswith("/prog"))
	and .places[0].mtime_s == 981173106 and (.outputs | length) == 1' "$kept.json" >/dev/null ||
	fail "the record: $(cat "$kept.json")"
[ "$(stat -c %Y prog)" -gt 1000000000 ] || fail "in place: the old time"
ends 0 "again" $place prog
says out.txt '^prog: left as it is, since the new version is the same$' "again"
ends 0 "another" $place --lab=stress-layout=5 prog
says out.txt '^prog: optimised anew in place$' "another"
cmp -s prog fast && fail "another: the same"
runs prog "another"
ends 0 "json" $place --report=json prog
jq -e '.schema == 1 and .input == "prog" and .output == null and .in_place.replaced
	and .in_place.again and (.in_place.path | endswith("/prog"))' out.txt >/dev/null ||
	fail "json: $(cat out.txt)"
[ "$(jq -r .in_place.backup out.txt)" = "$kept" ] || fail "json: another backup"
cmp prog fast || fail "made anew from an output, not from the original"
[ "$(find bk -type f | wc -l)" = 2 ] || fail "the original is kept twice: $(find bk -type f)"
ends 0 "restore" $back prog
says out.txt '^prog: restored$' "restore"
cmp prog original || fail "restore: another file"
[ "$(stat -c %.Y prog)" = "$(stat -c %.Y original)" ] || fail "restore: another time"
refuses 4 'is not an output of Morph' "restored already" $back prog
ends 0 "a second round" $place prog
ends 0 "restore, json" $back --report=json prog
jq -e --arg b "$kept" '.schema == 1 and .input == "prog" and .backup == $b
	and (.restored | endswith("/prog"))' out.txt >/dev/null || fail "json: $(cat out.txt)"
cmp prog original || fail "restored a second time: another file"
nothing_left "there and back"
cp --preserve=timestamps prog copy
ends 0 "a copy" $place copy
ends 0 "the file itself" $place prog
[ "$(find bk -type f | wc -l)" = 2 ] || fail "a copy is kept twice: $(find bk -type f)"
strip prog
runs prog "stripped"
ends 0 "restore, stripped" $back prog
ends 0 "restore, copy" $back copy
cmp prog original && cmp copy original || fail "restored: another file"

# ---- adopt: an output that was written earlier takes the place of its original
fresh
ends 0 "adopt, dry run" adopt --backup-dir=bk --dry-run prog fast
says out.txt '^prog: would be replaced (nothing written)$' "adopt, dry run"
cmp prog original || fail "adopt, dry run, and yet replaced"
[ -e bk ] && fail "adopt, dry run, and yet a backup"
ends 0 "adopt" adopt --backup-dir=bk prog fast
says out.txt '^prog: replaced$' "adopt"
cmp prog fast || fail "adopt: not the output"
runs prog "adopt"
ends 0 "adopt again" adopt --backup-dir=bk prog fast
says out.txt '^prog: left as it is, since it is this output already$' "adopt again"
"$optimize" --lab=stress-layout=5 --report=none original -o other || fail "another output"
ends 0 "adopt another" adopt --backup-dir=bk --json prog other
json "adopt another" '.command == "adopt" and .replaced and .again and .output == "other"'
cmp prog other || fail "adopt another: not the output"
[ "$(find bk -type f | wc -l)" = 2 ] || fail "adopt: the original is kept twice: $(find bk -type f)"
ends 0 "adopt, restore" $back prog
cmp prog original || fail "adopt, restore: another file"
cp fast broken
at=$(readelf -SW fast | sed -n 's/.* \.morph\.text *PROGBITS *[0-9a-f]* \([0-9a-f]*\) .*/\1/p')
printf '\x0f' | dd of=broken bs=1 seek=$((16#$at)) conv=notrunc status=none
# Root asks first who wrote it.
refuses 4 'broken: \(verify: at 0x\|was not written by\)' "adopt a damaged output" adopt --backup-dir=bk prog broken
refuses 4 'newer' "adopt a file that is no output" adopt --backup-dir=bk prog newer
"$optimize" --all --report=none newer -o newer.fast || fail "an output of another file"
refuses 4 'newer.fast: ' "adopt an output of another file" adopt --backup-dir=bk prog newer.fast
"$optimize" instrument --all --report=none original -o counting || fail "a counting version"
refuses 4 'counting: is of kind edges, which adopt takes only with --kind=edges' "adopt a version that counts" adopt --backup-dir=bk prog counting
refuses 1 'No such file' "adopt nothing" adopt --backup-dir=bk prog nowhere
chmod 4755 prog
refuses 4 'set-user-ID' "adopt, set-user-ID" adopt --backup-dir=bk prog fast
rm -f broken counting newer.fast other

# ---- a newer profile: the output's samples count for the original, which gets a new output
import() { # FILE SAMPLES: perf's text, as if FILE had run
	{
		readelf -lW "$1" | awk -v file="$dir/$1" '$1 == "LOAD" && / R E / {
			printf "p 7/7 1.0: PERF_RECORD_MMAP2 7/7: [%s(%s) @ %s 00:00 0 0]: r-xp %s\n", $3, $5, $2, file }'
		objdump -d --no-show-raw-insn --disassemble=hot "$1" |
			awk -v file="$dir/$1" -v n="$2" '/^ +[0-9a-f]+:/ { sub(":", "", $1); at[k++] = $1 }
			END { for (i = 0; i < n; i++) printf "p 7/7 1.1: cycles:u: %s f (%s)\n", at[i % k], file }'
	} >perf.text
	"$BUILD/morph-stats" --db samples.db import perf.text >/dev/null || fail "import: $1"
}
fresh
import prog 2000
ends 0 "a profile" --in-place --backup-dir=bk --db=samples.db prog
says out.txt '^  samples    2000, ' "a profile"
runs prog "a profile"
import prog 1500
ends 0 "a newer profile" --in-place --backup-dir=bk --db=samples.db prog
says out.txt '^  samples    3500, ' "a newer profile"
runs prog "a newer profile"
ends 3 "too little profile" --in-place --backup-dir=bk --db=samples.db --min-samples=9999 prog
runs prog "too little profile"
ends 0 "restore, a profile" $back prog
cmp prog original || fail "restore, a profile: another file"

# ---- after an upgrade, an older version is never restored
ends 0 "before an upgrade" $place prog
cp newer prog.dpkg-new && mv prog.dpkg-new prog
refuses 4 'is not an output of Morph' "upgraded" $back prog
ends 0 "optimised after an upgrade" $place prog
ends 0 "restored after an upgrade" $back prog
cmp prog newer || fail "restored after an upgrade: another file"
"$optimize" --lab=stress-layout=9 --report=none newer -o prog.new && mv prog.new prog
refuses 4 'says that it replaced an original' "an output of somebody else" $back prog
refuses 4 'says that it replaced an original' "an output of somebody else" $place prog
refuses 4 'there is no backup of its original (build-id' "no backup" restore --backup-dir=none prog
refuses 4 'there is no backup of its original (build-id' "no backup" --all --in-place --backup-dir=none prog
[ -e none ] && fail "a refusal made a backup directory"
refuses 4 'already optimised' "-o of an output" --all -o y prog
fresh
ends 0 "damage" $place prog
kept=$(sed -n 's/^  original   kept in //p' out.txt)
chmod u+w "$kept"
printf X | dd of="$kept" bs=1 seek=4000 conv=notrunc status=none
refuses 4 'is damaged' "a damaged backup" $back prog
refuses 4 'is damaged' "a damaged backup" $place --lab=stress-layout=2 prog
rm -f "$kept"
refuses 4 'is missing' "a missing backup" $back prog
fresh
mkdir -m 777 bk
refuses 4 'other users can write' "an open backup directory" $place prog

# ---- names
fresh
mkdir sub
ln -s ../prog sub/link
ln -s sub/link link
ends 0 "a link to a link" $place link
says out.txt '^  link to    /.*/prog$' "a link to a link"
[ -L link ] && [ -L sub/link ] || fail "a link is gone"
cmp -s prog fast || fail "the file behind the link is another"
ends 0 "restore through a link" $back sub/link
cmp prog original || fail "restore through a link: another file"
rm -r link sub
ln prog second
refuses 4 'second is the same file (a hard link).*--break-links' "two names" $place prog
refuses 4 'second is the same file (a hard link).*--break-links' "two names, dry run" $place --dry-run prog
mkdir cache && ln second cache/elf && rm second
ends 0 "a name in another directory" $place prog
says out.txt '1 other still leads to the file that was there' "a name in another directory"
cmp -s prog fast && cmp cache/elf original || fail "a name in another directory: the wrong one"
ends 0 "restore, a name in another directory" $back prog
rm -r cache && ln prog second
ends 0 "--break-links" $place --break-links prog
says out.txt '1 other still leads to the file that was there: these are two files now' "--break-links"
cmp -s prog fast && cmp second original || fail "--break-links: the wrong one"
rm second && ln prog second
ends 0 "restore, two names" $back prog
says out.txt '1 other still leads to the file that was there: these are two files now' "restore, two names"
cmp prog original && cmp -s second fast || fail "restore, two names: the wrong one"
rm second
mkdir 'a b'
mv prog $'a b/pr\n\xff'
ends 0 "an odd name" $place --report=json $'a b/pr\n\xff'
jq -e '.input == "a b/pr\n\ufffd"' out.txt >/dev/null || fail "an odd name: $(jq .input out.txt)"
ends 0 "an odd name" $back --report=json $'a b/pr\n\xff'
jq -e '.restored | endswith("/a b/pr\n\ufffd")' out.txt >/dev/null || fail "an odd name: $(cat out.txt)"
cmp $'a b/pr\n\xff' original || fail "an odd name: another file"
rm -r 'a b'
fresh
long=$(printf 'x%.0s' {1..255})
mv prog "$long"
ends 0 "the longest name" $place "$long"
ends 0 "the longest name" $back "$long"
rm "$long"

# ---- attributes of a file
fresh
chmod 4755 prog
refuses 4 'set-user-ID' "set-user-ID" $place prog
chmod 2755 prog
refuses 4 'set-group-ID' "set-group-ID" $place prog
chmod 0710 prog
ends 0 "mode" $place prog
[ "$(stat -c %a prog)" = 710 ] || fail "mode: $(stat -c %a prog)"
ends 0 "mode, back" $back prog
[ "$(stat -c %a prog)" = 710 ] || fail "mode, back: $(stat -c %a prog)"
# state FILE: print all attributes that must be kept
state() {
	stat -c '%a %u %g' "$1"
	! command -v getfacl >/dev/null || getfacl -cn "$1" 2>/dev/null
	! command -v getfattr >/dev/null || getfattr -d -e hex -m - "$1" 2>/dev/null | sort
}
fresh
if setfattr -n user.note -v 'some thing' prog 2>/dev/null; then
	[ -z "$is_root" ] || {
		chown 1234:2345 prog
		setfattr -n trusted.note -v 1 prog
		setcap cap_net_raw,cap_sys_nice+ep prog 2>/dev/null || without capabilities
	}
	setfacl -m u:4321:rx,g:777:x prog 2>/dev/null || without "access control lists"
	before=$(state prog)
	# Default ACLs of the directory must not be added to the file.
	setfacl -d -m u:999:rwx . 2>/dev/null
	ends 0 "attributes" $place prog
	cmp -s prog fast || fail "attributes: not replaced"
	[ "$before" = "$(state prog)" ] || fail "attributes: $(diff <(echo "$before") <(state prog))"
	ends 0 "attributes, back" $back prog
	cmp -s prog original || fail "attributes: not restored"
	[ "$before" = "$(state prog)" ] || fail "attributes, back: $(diff <(echo "$before") <(state prog))"
	fresh
	setfacl -b prog 2>/dev/null
	before=$(state prog)
	ends 0 "no attributes" $place prog
	[ "$before" = "$(state prog)" ] || fail "no attributes: $(diff <(echo "$before") <(state prog))"
	setfacl -k . 2>/dev/null
	fresh
	if [ -n "$is_root" ] && setfattr -n security.ima -v 0x0401 prog 2>/dev/null; then
		refuses 4 'signed or measured (security.ima)' "IMA" $place prog
	else
		without IMA
	fi
else
	without "extended attributes"
fi
fresh
cp prog fixed
if [ -n "$is_root" ] && chattr +i fixed 2>/dev/null; then
	refuses 4 'immutable' "immutable" $place fixed
	chattr -i fixed
else
	without immutable
fi
rm -f fixed

# ---- files that check their own bytes
for c in .prog.hmac prog.hmac; do
	fresh
	touch $c
	refuses 4 "its checksum is in .*$c" "$c" $place prog
	refuses 4 "its checksum is in .*$c" "$c, a copy" --all -o y prog
	rm $c
done
fresh
head -c 20000 /dev/urandom >payload
cat payload >>prog
refuses 4 'carries 20000 bytes behind its last section' "a payload" $place prog
refuses 4 'carries 20000 bytes behind its last section' "a payload, a copy" --all -o y prog
fresh
objcopy --add-section pydata=payload prog
refuses 4 'PyInstaller' "PyInstaller" $place prog
fresh
printf 'AI\002' | dd of=prog bs=1 seek=8 conv=notrunc status=none
refuses 4 'AppImage' "AppImage" $place prog
fresh
echo '~Module signature appended~' >>prog
refuses 4 'signature at its end' "a signed module" $place prog
[ -e y ] && fail "refused, and yet there is a copy"

# ---- the program runs meanwhile: the old file goes on, the next start is the new file
fresh
mkfifo pipe
./prog 12345 wait <pipe >running &
pid=$!
exec 8>pipe
until [ -s running ]; do kill -0 $pid || break; sleep 0.02; done
ends 0 "running" $place prog
ends 0 "running, back" $back prog
ends 0 "running, again" $place prog
echo >&8
exec 8>&-
wait $pid || fail "the running program failed"
[ "$(cat running)" = "$want"$'\n'"$want" ] || fail "the running program prints $(cat running)"
# Replace it repeatedly while it is started repeatedly: never "text file busy".
(
	for ((i = 0; i < 300; i++)); do
		[ "$(./prog 12345)" = "$want" ] || echo "start $i"
	done
) >starts 2>&1 &
pid=$!
while kill -0 $pid 2>/dev/null; do
	"$optimize" $back --report=none prog 2>>starts
	"$optimize" $place --report=none prog 2>>starts
done
wait $pid
[ -s starts ] && fail "started while it was replaced: $(head -3 starts)"

# ---- several at the same time: each succeeds or says why not
fresh
pids=
for i in 1 2 3 4 5 6; do
	"$optimize" $place --lab=stress-layout=$i --report=none prog 2>err.$i &
	pids="$pids $!"
done
done_well=0
for pid in $pids; do
	wait "$pid" && done_well=$((done_well + 1))
done
[ $done_well -ge 1 ] || fail "six at once: none done: $(cat err.[1-6])"
cat err.[1-6] | grep -v 'another morph-optimize is working on this file' | head -3 >others
[ -s others ] && fail "six at once: $(cat others)"
runs prog "six at once"
nothing_left "six at once"
ends 0 "restored after six" $back prog
cmp prog original || fail "restored after six: another file"

# ---- the file changes meanwhile (morph-optimize is stopped halfway, then continued)
fresh
cat >hold.gdb <<'END'
set pagination off
set breakpoint pending on
break me_replace_commit
run
shell cp newer x.new && mv x.new prog
continue
quit $_exitcode
END
if command -v gdb >/dev/null && gdb --version >/dev/null 2>&1 &&
	gdb -q -batch -ex 'info line me_replace_commit' "$optimize" 2>/dev/null | grep -q 'Line'; then
	gdb -q -batch -x hold.gdb --args "$optimize" $place --report=none prog >gdb.txt 2>&1
	grep -q 'prog: another program changed this file meanwhile; it was not replaced' gdb.txt ||
		fail "changed meanwhile: $(tail -5 gdb.txt)"
	cmp prog newer || fail "changed meanwhile, and yet replaced"
	nothing_left "changed meanwhile"
else
	without "a change meanwhile"
fi

# ---- killed at each moment: old or new, complete; the next run repairs everything
# whole N WHAT OLD NEW: after a kill at moment N, prog is OLD or NEW, and remains are harmless
whole() {
	local left f
	if ! cmp -s prog "$3" && ! cmp -s prog "$4"; then
		fail "$2: killed at $1: neither old nor new"
	fi
	[ "$(stat -c '%a %i' prog)" != "" ] && [ "$(stat -c %a prog)" = 750 ] ||
		fail "$2: killed at $1: mode $(stat -c %a prog)"
	left=$(find . -maxdepth 1 -name '.morph*')
	for f in $left; do
		nr_left=$((nr_left + 1))
		# A remaining file that can be executed must be complete.
		[ ! -x "$f" ] || [ "$(stat -c %a "$f")" = 600 ] || cmp -s "$f" "$4" ||
			fail "$2: killed at $1: half a program: $f"
	done
	if [ -d bk ]; then
		left=$(find bk -type f -perm /111)
		[ -z "$left" ] || fail "$2: killed at $1: executable: $left"
	fi
}
kill_everywhere() { # WHAT WRAPPER...
	local what=$1 n rc
	shift
	nr_left=0
	for ((n = 1; n < 400; n++)); do
		fresh
		chmod 750 prog
		"$@" "$kill_at" $n "$optimize" $place --report=none prog >/dev/null 2>err.txt
		rc=$?
		whole $n "$what" original fast
		ends 0 "$what: after a kill at $n" $place prog
		cmp -s prog fast || fail "$what: after a kill at $n: not replaced"
		ends 0 "$what: back after a kill at $n" $back prog
		cmp -s prog original || fail "$what: after a kill at $n: not restored"
		nothing_left "$what: after a kill at $n"
		[ $rc = 137 ] || break
	done
	[ $rc = 0 ] || fail "$what: ends with $rc: $(cat err.txt)"
	[ $n -gt 15 ] || fail "$what: only $n moments"
	echo "$what: $n moments, $nr_left with a second name"
	nr_left=0
	for ((n = 1; n < 400; n++)); do
		fresh
		chmod 750 prog
		"$optimize" $place --report=none prog
		"$@" "$kill_at" $n "$optimize" $back --report=none prog >/dev/null 2>err.txt
		rc=$?
		whole $n "$what, back" fast original
		[ $rc = 0 ] || cmp -s prog original || ends 0 "$what: back again after $n" $back prog
		# After a kill behind the rename, prog is the original already.
		cmp -s prog original || fail "$what: after a kill at $n: not restored"
		"$optimize" $place --report=none prog || fail "$what: in place after a kill at $n"
		nothing_left "$what: back, after a kill at $n"
		[ $rc = 137 ] || break
	done
	[ $rc = 0 ] || fail "$what, back: ends with $rc: $(cat err.txt)"
	[ $n -gt 5 ] || fail "$what, back: only $n moments"
	echo "$what, back: $n moments, $nr_left with a second name"
}
# (A leak checker does not work in a traced program, nor a sanitizer without /proc.)
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
if "$kill_at" 999999 true; then
	kill_everywhere "killed" env
	# Without /proc, files have a name from the start, as on file systems without O_TMPFILE.
	cat >noproc.sh <<'END'
mount -t tmpfs none /proc && exec "$@"
END
	if [ -n "$is_root" ] && unshare -m bash noproc.sh "$optimize" --version \
		>/dev/null 2>&1; then
		kill_everywhere "killed, named" unshare -m bash noproc.sh
	else
		without "files with a name"
	fi
else
	without "kills at each system call"
fi
# Kill at random times, with other programs running in between.
fresh
chmod 750 prog
nr_left=0
for ((i = 0; i < 60; i++)); do
	"$optimize" $place --lab=stress-layout=$((i % 3 + 1)) --report=none prog 2>/dev/null &
	pid=$!
	sleep "0.0$((RANDOM % 30 + 10))"
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	runs prog "killed at random, $i"
	[ $((i % 4)) != 3 ] || "$optimize" $back --report=none prog 2>/dev/null
done
"$optimize" $place --report=none prog
ends 0 "after random kills" $back prog
cmp prog original || fail "after random kills: another file"
nothing_left "after random kills"
# Signals that can be handled. timeout sends them: a child of bash that is hit before it executes
# another program would run the script's own clean-up.
for sig in INT TERM HUP; do
	for delay in 0.001 0.01 0.02 0.03; do
		timeout -s $sig $delay "$optimize" $place --report=none prog 2>/dev/null
		runs prog "SIG$sig"
		[ -z "$(find . -maxdepth 1 -name '.morph*')" ] || fail "SIG$sig: left behind"
		"$optimize" $back --report=none prog 2>/dev/null
	done
done

# ---- full disks, limits, read-only disks, missing rights
fresh
(ulimit -f 8; exec "$optimize" $place --report=none prog) 2>err.txt &&
	fail "a limit on the size of files: done"
says err.txt 'File too large' "a limit on the size of files"
cmp prog original || fail "a limit on the size of files: replaced"
nothing_left "a limit on the size of files"
cat >mounted.sh <<'END'
set -u
fail() { echo "$*"; }
expect() { # WHAT TEXT ARGS
	local what=$1 text=$2 got=0
	shift 2
	"$optimize" "$@" >out.txt 2>err.txt || got=$?
	[ $got = 1 ] || fail "$what: status $got: $(cat err.txt)"
	grep -q "^morph-optimize: .*$text" err.txt || fail "$what says: $(cat err.txt)"
	[ "$(wc -l <err.txt)" = 1 ] || fail "$what: more than a line"
}
optimize=$1
mkdir small && mount -t tmpfs -o size=256k none small 2>/dev/null || exit 77
cp -p original small/prog || exit 77
head -c 300k /dev/zero >small/fill 2>/dev/null
expect "a full disk" 'No space left' --all --in-place --backup-dir=bk2 small/prog
cmp small/prog original || fail "a full disk: replaced"
[ "$(ls -A small)" = $'fill\nprog' ] || fail "a full disk: left behind: $(ls -A small)"
rm small/fill
mkdir tiny && mount -t tmpfs -o size=4k none tiny || exit 77
expect "a full backup" 'No space left' --all --in-place --backup-dir=tiny/bk small/prog
cmp small/prog original || fail "a full backup: replaced"
[ -z "$(find tiny -type f)" ] || fail "a full backup: left behind: $(find tiny -type f)"
"$optimize" --all --in-place --backup-dir=bk2 --report=none small/prog || fail "small: $?"
head -c 300k /dev/zero >small/fill 2>/dev/null
expect "a full disk, back" 'No space left' restore --backup-dir=bk2 small/prog
cmp small/prog fast || fail "a full disk, back: changed"
rm small/fill
# As in a container: the file is in the lower layer, changes go to the upper one.
mkdir lower upper && mount -t tmpfs none upper && mkdir upper/up upper/work upper/all &&
	cp -p original lower/prog &&
	mount -t overlay -o lowerdir=lower,upperdir=upper/up,workdir=upper/work none upper/all 2>/dev/null && {
	"$optimize" --all --in-place --backup-dir=bk3 --report=none upper/all/prog ||
		fail "an overlay: $?"
	cmp upper/all/prog fast || fail "an overlay: not replaced"
	"$optimize" restore --backup-dir=bk3 --report=none upper/all/prog ||
		fail "an overlay, back: $?"
	cmp upper/all/prog original || fail "an overlay: not restored"
	cmp lower/prog original || fail "an overlay: changed below"
	[ "$(ls -A upper/all)" = prog ] || fail "an overlay: left behind: $(ls -A upper/all)"
}
mount -o remount,ro small
expect "a read-only disk" 'Read-only' --all --in-place --backup-dir=bk2 --lab=stress-layout=3 small/prog
expect "a read-only disk, back" 'Read-only' restore --backup-dir=bk2 small/prog
mount --bind prog bound 2>/dev/null || exit 0
expect "a mounted file" 'busy' --all --in-place --backup-dir=bk2 bound
END
if [ -n "$is_root" ] && unshare -m true 2>/dev/null; then
	fresh
	cp prog bound
	said=$(unshare -m bash mounted.sh "$optimize")
	case $? in
	77) without "full disks" ;;
	*) [ -z "$said" ] || fail "$said" ;;
	esac
else
	without "full disks"
fi
fresh
if [ -n "$is_root" ] && command -v setpriv >/dev/null; then
	chmod 777 "$theirs"
	mkdir "$theirs/closed"
	cp original "$theirs/closed/prog"
	cp original "$theirs/prog"
	as="setpriv --reuid=1234 --regid=1234 --clear-groups"
	if $as test -x "$optimize" && $as test -r "$theirs/prog"; then
		$as env HOME="$theirs" "$optimize" --all --in-place "$theirs/closed/prog" >out.txt 2>err.txt &&
			fail "a directory that may not be written: done"
		says err.txt 'Permission denied' "a directory that may not be written"
		$as env HOME="$theirs" "$optimize" --all --in-place "$theirs/prog" >out.txt 2>err.txt
		[ $? = 1 ] || fail "another user's file: $(cat err.txt)"
		says err.txt 'prog: cannot keep its owner and group: Operation not permitted' \
			"another user's file"
		cmp "$theirs/prog" original || fail "another user's file: replaced"
		chown 1234:1234 "$theirs/prog"
		$as env -u XDG_STATE_HOME HOME="$theirs" "$optimize" --all --in-place \
			"$theirs/prog" >out.txt 2>err.txt || fail "a user's own file: $(cat err.txt)"
		says out.txt "kept in $theirs/.local/state/morph/backup/" "a user's own file"
		cmp -s "$theirs/prog" fast || fail "a user's own file: not replaced"
		$as env -u XDG_STATE_HOME HOME="$theirs" "$optimize" restore "$theirs/prog" \
			>out.txt 2>err.txt || fail "a user's own file, back: $(cat err.txt)"
		cmp "$theirs/prog" original || fail "a user's own file: not restored"
	else
		without "other users"
	fi
else
	without "other users"
fi

[ -z "$left_out" ] || echo "left out: ${left_out#, }"
[ $nr_failed = 0 ]
