#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Stripped programs optimised in place: debuggers find the new debug file, the original's stays, and
# restore brings back every byte and every name. Also with a kill at any moment.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/e2e/debug/lib-readers.sh
. "$root/tests/e2e/debug/lib-readers.sh"
need objcopy strip readelf jq
scratch debug-in-place
optimize=$BUILD/morph-optimize
gcc -O1 -o kill-at "$root/tests/tools/kill_at.c" || exit 1

build_id() { readelf -n "$1" 2>/dev/null | sed -n 's/.*Build ID: //p'; }
of_id() { echo "${1:0:2}/${1:2}.debug"; }

g++ -g -O2 -Wl,--build-id -o full "$src" && objcopy --only-keep-debug full full.debug &&
	strip --strip-unneeded -o bare full && chmod 750 full.debug || exit 1
old_id=$(build_id bare)

# Two ways to ship: a tree of build-ids, as in distributions; the debug file beside the program.
ship_tree() {
	rm -rf place bk
	mkdir -p "place/debug/.build-id/${old_id:0:2}" place/bin
	cp -p bare place/bin/prog
	cp -p full.debug "place/debug/.build-id/$(of_id "$old_id")"
	given=place/debug/.build-id/$(of_id "$old_id")
}
ship_beside() {
	rm -rf place bk
	mkdir -p place/bin
	cp -p full.debug place/bin/prog.debug
	cp -p bare place/bin/prog
	(cd place/bin && objcopy --add-gnu-debuglink=prog.debug prog)
	given=auto
}

# state: all files with contents and attributes. Times of directories are left out.
state() { (cd place && find . -printf '%p %y %m %u %g ' \( -type d -printf '\n' -o -printf '%T@\n' \) | sort &&
	find . -type f -exec sha256sum {} + | sort); }
without_times() { sed 's/ [0-9]*\.[0-9]*$//'; }
put() { "$optimize" --all --in-place --backup-dir=bk "--debug-file=$given" "$@" place/bin/prog; }
back() { "$optimize" restore --backup-dir=bk place/bin/prog; }
new_debug() {
	local id
	id=$(build_id place/bin/prog)
	case $given in
	auto) echo "place/bin/.debug/${id:2}.debug" ;;
	*) echo "place/debug/.build-id/$(of_id "$id")" ;;
	esac
}

for way in tree beside; do
	ship_$way
	state >before.txt
	[ "$(place/bin/prog 20)" = "$(./bare 20)" ] || fail "$way: another output"
	command_ends 0 "$way" put --report=json
	json "$way" '.debug.output and .debug.units_extended > 0 and .debug.units_left == 0 and .in_place.replaced'
	[ "$(jq -r .debug.output out.txt)" = "$PWD/$(new_debug)" ] || fail "$way: $(jq -r .debug.output out.txt)"
	[ -f "$(new_debug)" ] && [ "$(stat -c %a "$(new_debug)")" = 640 ] ||
		fail "$way: no debug file of the output"
	[ "$(build_id "$(new_debug)")" = "$(build_id place/bin/prog)" ] || fail "$way: two build-ids"
	command_ends 0 "$way, verified" "$optimize" verify "$(find bk -type f ! -name '*.json')" \
		"--debug-file=$PWD/full.debug" "--debug-output=$(new_debug)" place/bin/prog
	# Debuggers find the new debug file.
	if [ $way = beside ]; then
		stops place/bin/prog "$way"
		readers full place/bin/prog 3
	else
		timeout 600 gdb -q -nx -batch -ex 'set debuginfod enabled off' \
			-iex "set debug-file-directory $PWD/place/debug" -ex "break scopes.cc:$line" \
			-ex 'run 400' -ex 'print/x $pc' -ex bt place/bin/prog >gdb.txt 2>&1
		says gdb.txt "^#0 .*leaf (x=33[0-9]) at .*scopes.cc:$line" "$way: gdb"
		in_copies place/bin/prog "$(sed -n 's/^\$1 = //p' gdb.txt)" || fail "$way: gdb stopped in no copy"
	fi
	# The same again; with the debug file missing; another output, which
	# replaces the debug file.
	cp "$(new_debug)" same.debug
	command_ends 0 "$way, again" put
	says out.txt 'left as it is' "$way, again"
	cmp same.debug "$(new_debug)" || fail "$way, again: another debug file"
	rm "$(new_debug)"
	command_ends 0 "$way, debug file lost" put
	cmp same.debug "$(new_debug)" || fail "$way: the debug file is not there again"
	first=$(new_debug)
	command_ends 0 "$way, another" put --lab=stress-layout=5
	[ ! -e "$first" ] && [ -f "$(new_debug)" ] || fail "$way: debug files of two outputs"
	# The same output at two paths shares one debug file, which stays while either path exists.
	if [ $way = tree ]; then
		cp -p bare place/bin/copy
		command_ends 0 "a copy" "$optimize" --all --lab=stress-layout=5 --in-place --backup-dir=bk \
			"--debug-file=$given" place/bin/copy
		cmp place/bin/prog place/bin/copy || fail "a copy: another output"
		second=$(new_debug)
		command_ends 0 "a copy stays" back
		[ -f "$second" ] || fail "the debug file of a copy that is there is gone"
		command_ends 0 "a copy, back" "$optimize" restore --backup-dir=bk place/bin/copy
		[ ! -e "$second" ] || fail "the debug file of two programs that were restored is there"
		rm place/bin/copy
	else
		command_ends 0 "$way, back" back
	fi
	state >after.txt
	cmp -s before.txt after.txt || fail "$way: restored: $(diff before.txt after.txt)"
	# A debug file that was changed meanwhile stays.
	command_ends 0 "$way, once more" put
	first=$(new_debug)
	echo changed >>"$first"
	command_ends 0 "$way, back, a changed debug file" back
	[ -f "$first" ] || fail "$way: a file that is not ours is gone"
done

# ---- what is refused
ship_tree
state >before.txt
command_ends 4 "another's debug file" "$optimize" --all --in-place --backup-dir=bk --debug-file=/bin/true place/bin/prog
one_line "another's debug file"
command_ends 2 "--debug-output" "$optimize" --all --in-place --debug-file=x --debug-output=y place/bin/prog
command_ends 2 "--restore" "$optimize" restore --debug-file=x place/bin/prog
g++ -g -O2 -Wl,--build-id=none -o place/bin/nameless.full "$src"
(cd place/bin && objcopy --only-keep-debug nameless.full nameless.debug && strip -o nameless nameless.full &&
	objcopy --add-gnu-debuglink=nameless.debug nameless)
command_ends 4 "no build-id" "$optimize" --all --in-place --backup-dir=bk --debug-file=auto place/bin/nameless
one_line "no build-id"
says err.txt 'has no build-id' "no build-id"
rm place/bin/nameless*
# No space for the debug file, or no right to write it: nothing is replaced, nothing is left.
cat >mounted.sh <<'END'
mount -t tmpfs -o size=64k none place/debug && mkdir -p "place/debug/.build-id/$2" &&
	head -c 56k /dev/zero >place/debug/fill && cp full.debug given || exit 77
ln -s "$PWD/given" "place/debug/.build-id/$3" || exit 77
got=0
"$1" --all --in-place --backup-dir=bk --debug-file="place/debug/.build-id/$3" place/bin/prog 2>err.txt >out.txt || got=$?
[ $got = 1 ] || echo "status $got"
grep -q 'place/debug/.build-id/.*: No space left' err.txt || echo "says $(cat err.txt)"
[ "$(wc -l <err.txt)" = 1 ] || echo "$(wc -l <err.txt) lines"
[ "$(find place/debug -type f -o -type d | sort | tr '\n' ' ')" = \
	"place/debug place/debug/.build-id place/debug/.build-id/$2 place/debug/fill " ] ||
	echo "left behind: $(find place/debug)"
END
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	said=$(unshare -m bash mounted.sh "$optimize" "${old_id:0:2}" "$(of_id "$old_id")")
	case $? in
	77) left_out="$left_out, full disks" ;;
	*) [ -z "$said" ] || fail "a full disk: $said" ;;
	esac
else
	left_out="$left_out, full disks"
fi
state >after.txt
cmp -s before.txt after.txt || fail "refused, and yet: $(diff before.txt after.txt)"

# ---- the program changes at the last moment: the debug file is removed again
cat >hold.gdb <<'END'
set pagination off
set breakpoint pending on
break me_replace_commit
run
shell cp full place/x && mv place/x place/bin/prog
continue
quit $_exitcode
END
if gdb -q -batch -ex 'info line me_replace_commit' "$optimize" 2>/dev/null | grep -q Line; then
	gdb -q -batch -x hold.gdb --args "$optimize" --all --in-place --backup-dir=bk "--debug-file=$given" \
		--report=none place/bin/prog >gdb.txt 2>&1
	says gdb.txt 'prog: another program changed this file meanwhile; it was not replaced' "changed meanwhile"
	cmp place/bin/prog full || fail "changed meanwhile, and yet replaced"
	[ "$(find place/debug -type f | wc -l)" = 1 ] || fail "changed meanwhile: $(find place/debug -type f)"
else
	left_out="$left_out, a change meanwhile"
fi

# ---- killed at each moment: the program is old or new, and the new one has its debug file
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
if ./kill-at 999999 true 2>err.txt; then
	ship_tree
	state >before.txt
	put --report=none || fail "in place: $?"
	state | without_times >optimised.txt
	for ((n = 1; n < 400; n++)); do
		ship_tree
		./kill-at $n "$optimize" --all --in-place --backup-dir=bk "--debug-file=$given" --report=none \
			place/bin/prog >out.txt 2>err.txt
		rc=$?
		if ! cmp -s place/bin/prog bare; then
			[ -f "$(new_debug)" ] && [ "$(build_id "$(new_debug)")" = "$(build_id place/bin/prog)" ] ||
				fail "killed at $n: no debug file"
		fi
		cmp -s "$given" full.debug || fail "killed at $n: the original's debug file"
		put --report=none || fail "after a kill at $n: $?"
		state | without_times | cmp -s - optimised.txt ||
			fail "after a kill at $n: $(state | without_times | diff optimised.txt -)"
		back >out.txt || fail "back after a kill at $n"
		state >after.txt
		cmp -s before.txt after.txt || fail "after a kill at $n: $(diff before.txt after.txt)"
		[ $rc = 137 ] || break
	done
	[ $rc = 0 ] || fail "ends with $rc: $(cat err.txt)"
	[ $n -gt 25 ] || fail "only $n moments"
	echo "$n moments"
	for ((n = 1; n < 400; n++)); do
		ship_tree
		put --report=none
		./kill-at $n "$optimize" restore --backup-dir=bk --report=none place/bin/prog >out.txt 2>err.txt
		rc=$?
		[ $rc = 0 ] || cmp -s place/bin/prog bare || back >out.txt || fail "back again after a kill at $n"
		state >after.txt
		cmp -s before.txt after.txt || fail "back, killed at $n: $(diff before.txt after.txt)"
		[ $rc = 137 ] || break
	done
	[ $rc = 0 ] || fail "back: ends with $rc: $(cat err.txt)"
	[ $n -gt 5 ] || fail "back: only $n moments"
	echo "$n moments, back"
else
	left_out="$left_out, kills"
fi
[ -z "$left_out" ] || echo "left out: ${left_out#, }"
[ $nr_failed = 0 ]
