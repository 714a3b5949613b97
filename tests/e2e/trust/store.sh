#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The database in a directory of a user with fewer rights, as /var/lib/morph is the service's: what that user
# puts there in place of the database, its journals and the copy of an older one changes no file of root's when
# root reads, writes or migrates it.
. "$(dirname "$0")/lib-trust.sh"
need sqlite3 python3
trust_scratch trust-store
cat >perf.text <<'END'
p 7/7 1.0: PERF_RECORD_MMAP2 7/7: [0x401000(0x1000) @ 0x1000 00:00 0 0]: r-xp /bin/true
p 7/7 1.1: cycles:u: 401100 f (/bin/true)
END
# write: root writes into the database. read: root reads it.
write() {
	"$BUILD/morph-stats" import --db=theirs/db perf.text >out.txt 2>err.txt
}
read_it() {
	"$BUILD/morph-stats" status --db=theirs/db >out.txt 2>err.txt
}
anew() {
	rm -rf theirs/* && write && chown nobody:nogroup theirs/db || fail "anew: $(cat err.txt)"
}

# ---- the user's links in place of the files, whole or a part of the name
anew
for name in db db-wal db-shm db-journal; do
	for to in precious rootdir/new; do
		as_nobody mv theirs/$name theirs/kept 2>/dev/null
		as_nobody ln -s "$dir/$to" theirs/$name
		write && [ $name = db ] && fail "a link $name: written"
		read_it && [ $name = db ] && fail "a link $name: read"
		[ $name != db ] || says err.txt 'a symbolic link that belongs to another user' "a link $name"
		untouched "a link $name to $to"
		rm -f theirs/$name
		as_nobody mv theirs/kept theirs/$name 2>/dev/null
	done
done
anew
cp theirs/db other
as_nobody mkdir theirs/in
as_nobody ln -s "$dir" theirs/in/up
"$BUILD/morph-stats" import --db=theirs/in/up/other perf.text >out.txt 2>err.txt && fail "a linked directory: written"
"$BUILD/morph-stats" status --db=theirs/in/up/other >out.txt 2>err.txt && fail "a linked directory: read"
[ ! -e other-wal ] || fail "a linked directory: $(ls other*)"

# ---- a second name of root's file, which some systems let a user make; a pipe
for name in db-wal db-shm db-journal; do
	anew
	ln precious theirs/$name
	write
	read_it
	untouched "a second name $name"
	rm -f theirs/$name
	as_nobody mkfifo theirs/$name
	timeout 600 "$BUILD/morph-stats" status --db=theirs/db >out.txt 2>err.txt
	[ $? != 124 ] || fail "a pipe $name: waited for"
done

# ---- a journal that names a file, which SQLite would remove
anew
cat >journal.py <<'END'
import struct, sys
database, named = sys.argv[1], sys.argv[2].encode()
data = open(database, 'rb').read()
page = struct.unpack('>H', data[16:18])[0]
magic = bytes.fromhex('d9d505f920a163d7')
journal = (magic + struct.pack('>IIIII', 0, 0, len(data) // page, 512, page)).ljust(512, b'\0')
journal += struct.pack('>I', 0x40000000 // page + 1) + named + struct.pack('>II', len(named), sum(named)) + magic
open(database + '-journal', 'wb').write(journal)
END
python3 journal.py theirs/db "$dir/precious" && chown nobody:nogroup theirs/* || exit 1
write && fail "a journal that names a file: accepted"
untouched "a journal that names a file"
python3 journal.py theirs/db "$dir/precious" && chown nobody:nogroup theirs/*
read_it
untouched "a journal that names a file, read"

# ---- a database of another schema is left as it is
anew
sqlite3 theirs/db "PRAGMA user_version = 16; PRAGMA wal_checkpoint(TRUNCATE)" >/dev/null
cp theirs/db before.db
write && fail "an older database: accepted"
says err.txt 'has schema 16, of a Morph before the first release: move it away'
[ "$(sqlite3 theirs/db 'SELECT count(*) FROM sqlite_master; PRAGMA user_version')" = \
	"$(sqlite3 before.db 'SELECT count(*) FROM sqlite_master; PRAGMA user_version')" ] || fail "an older database: changed"
finish
