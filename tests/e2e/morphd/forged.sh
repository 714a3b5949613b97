#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A map note may name another program's original. Such a file must not affect that program's counts,
# unless the file is an output of that original: listed in the database, or verified here.
. "$(dirname "$0")/../lib.sh"
need gcc sqlite3 python3 readelf
scratch forged
morphd=$BUILD/morphd
optimize=$BUILD/morph-optimize
"$morphd" run --record probe -- true 2>err.txt || skip "no sampling on this machine: $(head -n 1 err.txt)"

# Samples of the module with the build-id of FILE.
samples() { # DB FILE
	local id
	id=$(readelf -n "$2" | sed -n 's/.*Build ID: //p' | tr a-f A-F)
	sqlite3 -readonly "$1" "SELECT coalesce(sum(nr_samples), 0) FROM bucket b JOIN module m
		ON b.module = m.key WHERE hex(build_id) = '$id'"
}
spin() { # DB FILE OPTIONS...: sample FILE into DB
	local db=$1 file=$2 ms
	shift 2
	for ms in 300 3000 30000; do
		rm -f "$db" "$db"-*
		"$morphd" run --no-kernel --rate 4000 --db "$db" "$@" -- "$file" spin $ms >out.txt 2>err.txt
		[ "$(sqlite3 -readonly "$db" 'SELECT sum(nr_samples) FROM bucket')" -le 100 ] || return 0
	done
}

mkdir here there
${CC:-gcc} -O1 -Wl,--emit-relocs -o here/busy "$root/tests/e2e/morphd/busy.c" -ldl -lpthread || exit 1
"$optimize" --all --report=none -o here/faster here/busy 2>err.txt || fail "morph-optimize: $(cat err.txt)"
# Replace the moved code by a loop that ends the program with status 0 after some 10^9 turns.
cat >forge.py <<'END'
import struct
import sys

data = bytearray(open(sys.argv[1], 'rb').read())
shoff = struct.unpack_from('<Q', data, 0x28)[0]
count, names = struct.unpack_from('<HH', data, 0x3c)
sections = [struct.unpack_from('<IIQQQQIIQQ', data, shoff + 64 * i) for i in range(count)]
strings = sections[names][4]
text = next(s for s in sections
            if data[strings + s[0]:data.index(0, strings + s[0])] == b'.morph.text')
loop = bytes.fromhex('48c7c1ffffff3f48ffc975fbb83c00000031ff0f05')
at = int(sys.argv[3])
data[text[4] + at:text[4] + at + len(loop)] = loop
struct.pack_into('<Q', data, 0x18, text[3] + at)
open(sys.argv[2], 'wb').write(data)
END
python3 forge.py here/faster here/forged 16 || exit 1
chmod +x here/forged
cmp -s here/faster here/forged && fail "the forger changed nothing"

# The forged file lies beside the original that its note names.
spin forged.db "$dir/here/forged" --record forged.rec
[ "$(samples forged.db here/busy)" = 0 ] || fail "forged: $(samples forged.db here/busy) samples of the original"
[ "$(sqlite3 -readonly forged.db 'SELECT count(*) FROM output')" = 0 ] || fail "forged: is in the list"
[ "$(sqlite3 -readonly forged.db 'SELECT sum(nr_samples) FROM bucket')" -gt 100 ] || fail "forged: no samples at all"
says err.txt 'forged: its original is not known here' "forged"
# The same for a replayed recording, where the original is known and the genuine output is listed.
spin good.db "$dir/here/faster"
[ "$(samples good.db here/busy)" -gt 100 ] || fail "genuine: no samples of the original"
[ "$(sqlite3 -readonly good.db 'SELECT count(*) FROM output')" = 1 ] || fail "genuine: not in the list"
before=$(samples good.db here/busy)
"$morphd" --input forged.rec --db good.db 2>err.txt || fail "replay: $(cat err.txt)"
[ "$(samples good.db here/busy)" = "$before" ] || fail "replay: a forged file changed the original's counts"

# A genuine output without its original counts as itself. Once it is listed,
# it counts for the original.
cp here/faster there/faster
spin alone.db "$dir/there/faster"
[ "$(samples alone.db here/busy)" = 0 ] || fail "alone: samples of an original that is not here"
[ "$(samples alone.db there/faster)" -gt 100 ] || fail "alone: no samples of its own"
own=$(samples good.db there/faster) # samples of the forged file, which has the same build-id
"$morphd" run --no-kernel --rate 4000 --db good.db -- there/faster spin 1000 >out.txt 2>err.txt ||
	fail "listed: $(cat err.txt)"
[ "$(samples good.db here/busy)" -gt "$before" ] || fail "listed: no samples of the original"
[ "$(samples good.db there/faster)" = "$own" ] || fail "listed: samples of its own"

# morph-optimize lists its output in the database of the profile.
spin prof.db "$dir/here/busy"
"$optimize" --db=prof.db --min-samples=1 --report=none -o there/new here/busy 2>err.txt
if [ $? = 0 ]; then
	[ "$(sqlite3 -readonly prof.db 'SELECT count(*) FROM output')" = 1 ] || fail "morph-optimize: not in the list"
	before=$(samples prof.db here/busy)
	mv here/busy here/moved
	"$morphd" run --no-kernel --rate 4000 --db prof.db -- there/new spin 1000 >out.txt 2>err.txt ||
		fail "new: $(cat err.txt)"
	[ "$(samples prof.db here/moved)" -gt "$before" ] || fail "new: no samples of the original"
	mv here/moved here/busy
else
	[ "$(sqlite3 -readonly prof.db 'SELECT count(*) FROM output')" = 0 ] || fail "nothing moved, and yet listed"
	echo "nothing worth moving: the list of morph-optimize was not tried"
fi
# Another database's list is not trusted.
"$BUILD/morph-stats" merge merged.db good.db >out.txt 2>err.txt || fail "merge: $(cat err.txt)"
[ "$(sqlite3 -readonly merged.db 'SELECT count(*) FROM output')" = 0 ] || fail "merge: takes the list over"
finish
