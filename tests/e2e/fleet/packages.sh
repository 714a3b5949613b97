#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Originals from Debian packages: a mirror with an index, on disk and by http, and folders of packages without one.
# Packages are cut short, changed, hostile, or have other files of the same build-id.
. "$(dirname "$0")/lib-builds.sh"
need dpkg-deb dpkg-scanpackages python3 curl objcopy
builds_start

# package DIR NAME VERSION [FIELD...]: packs ./tree
package() {
	mkdir -p tree/DEBIAN "$1"
	printf '%s\n' "Package: $2" "Version: $3" "Architecture: amd64" "Maintainer: none" "Description: a test" "${@:4}" \
		>tree/DEBIAN/control
	# xz, as Debian's; the default of dpkg-deb differs.
	dpkg-deb --root-owner-group -Zxz -b tree "$1/${2}_${3}_amd64.deb" >dpkg.txt 2>&1 || fail "dpkg-deb: $(cat dpkg.txt)"
	rm -r tree
}
# with FILE...: the next package has these files, under usr/bin
with() {
	mkdir -p tree/usr/bin tree/usr/share/doc
	cp "$@" tree/usr/bin/
	echo words >tree/usr/share/doc/words
}

# taken STATUS WHAT OPTION...: one job, which gets its original by the options; all jobs differ
number=1
taken() {
	number=$((number + 1))
	request 0 "$2" prog --min-samples=$number
	command_ends "$1" "$2" "$fleet" build -d "$(<maker.conn)" --once --give-up=0 --package-cache="$dir/cache" "${@:3}"
	case $1 in
	0) build_is "done" "$2" --min-samples=$number ;;
	1) build_is failed "$2" --min-samples=$number ;;
	75) build_is queued "$2" --min-samples=$number ;;
	esac
	[ -z "$(ls -A tmp)" ] || fail "$2: files are left: $(ls -A tmp)"
}

# forget_job: the last job was not made; nobody is to take it
forget_job() {
	fleet_sql "$ADMIN" "DELETE FROM fleet.build WHERE options = '--min-samples=$number'"
}

# asked FILE STATUS: how often the http server was asked for it
asked() {
	grep -c "GET [^ ]*$1.*\" $2 " http.log
}

make_program second -O1
make_program third -O3
cp prog stolen
printf '\x90' | dd of=stolen bs=1 seek=$((0x$(nm prog | awk '/ hot$/ {print $1}') - 0x400000 + 5)) conv=notrunc status=none
cmp -s prog stolen && fail "the program was not changed"
objcopy --only-keep-debug prog prog.debug

# ---- a folder without an index
with second third
package folder other 1
with second prog
package folder/deep tool 1.0-1
taken 0 "a folder" --packages=folder
says out.txt "^$id --min-samples=$number: .*/original$"
command_ends 0 "the database" sqlite3 cache/packages.db "SELECT count(*) FROM package"
says out.txt '^2$'
# It is read once: a package whose size and time have not changed is not opened to look for something else.
with second
package folder late 1
find folder -name 'other*' -exec touch -r {} stamp \;
size=$(stat -c %s folder/other_1_amd64.deb)
head -c "$size" /dev/zero >folder/other_1_amd64.deb
touch -r stamp folder/other_1_amd64.deb
mv folder/deep/tool_1.0-1_amd64.deb .
taken 1 "a folder that was read" --packages=folder
! grep -q other_1 out.txt || fail "a package that did not change was read again: $(cat out.txt)"
says out.txt "no original with the build-id $id and this code is here: no package lists this build-id$"
# What changed is read again, and a package that is damaged is reported once.
touch folder/other_1_amd64.deb
mkdir folder/other-place && mv tool_1.0-1_amd64.deb folder/other-place/
taken 0 "a package that moved" --packages=folder
says out.txt "folder/other_1_amd64.deb: is no Debian package$"
taken 0 "the same again" --packages=folder
! grep -q other_1 out.txt || fail "a damaged package is reported again: $(cat out.txt)"
echo junk >cache/packages.db
taken 0 "a damaged database" --packages=folder

# ---- packages that are no help
mkdir bad
good=folder/other-place/tool_1.0-1_amd64.deb
head -c $(($(stat -c %s $good) / 2)) $good >bad/cut_1_amd64.deb
cp $good bad/changed_1_amd64.deb
# In the compressed data, which has a checksum.
printf '\xff\xff\xff\xff' | dd of=bad/changed_1_amd64.deb bs=1 seek=$(($(stat -c %s $good) - 3000)) conv=notrunc status=none
: >bad/empty_1_amd64.deb
mkfifo bad/pipe_1_amd64.deb
mkdir bad/directory_1_amd64.deb
ln -s "$dir/$good" bad/link_1_amd64.deb
taken 1 "packages that are no help" --packages=bad
for name in cut changed; do
	says out.txt "bad/${name}_1_amd64.deb: is damaged or cut short$"
done
says out.txt "bad/empty_1_amd64.deb: is no Debian package$"
[ "$(grep -c bad/ out.txt)" = 3 ] || fail "other messages: $(cat out.txt)"

# ---- hostile packages: names that lead out, links, devices, and a program behind a link of its name
mkdir hostile
python3 - prog <<'PYTHON'
import io, sys, tarfile

def tar(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.GNU_FORMAT) as t:
        for name, kind, link, data in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, link, len(data)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()

def deb(path, data, suffix=".gz"):
    with open(path, "wb") as f:
        f.write(b"!<arch>\n")
        for name, content in (("debian-binary", b"2.0\n"), ("control.tar.gz", tar([])), ("data.tar" + suffix, data)):
            f.write(f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode() + content + b"\n" * (len(content) % 2))

prog = open(sys.argv[1], "rb").read()
file, sym, hard, fifo, dev = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE
evil = [("../../../../escaped", file, "", b"\x7fELF" + bytes(100)), ("/tmp/escaped", file, "", b"x" * 100),
        ("./usr/bin/prog", sym, "/etc/passwd", b""), ("./usr/bin/hard", hard, "/etc/shadow", b""),
        ("./dev", dev, "", b""), ("./pipe", fifo, "", b"")]
deb("hostile/links_1_amd64.deb", tar(evil))
deb("hostile/plain_1_amd64.deb", b"no archive" * 100, "")
deb("hostile/many_1_amd64.deb", tar([("./zeros", file, "", b"\x7fELF" + bytes(1 << 24))]))
deb("evil-with.deb", tar(evil + [("../../usr/bin/" + "x" * 300, file, "", prog)]))
PYTHON
taken 1 "hostile packages" --packages=hostile
says out.txt "hostile/plain_1_amd64.deb: is damaged or cut short$"
cp evil-with.deb hostile/
taken 0 "the program in a hostile package" --packages=hostile
[ ! -e /tmp/escaped ] && [ -z "$(find . -name 'escaped*' -o -name 'xxxx*')" ] || fail "a package wrote a file"

# ---- two files of one build-id: the code decides
with stolen second
package twins first 1
taken 1 "the build-id with other code" --packages=twins
with stolen prog
package twins second 1
taken 0 "two files of one build-id" --packages=twins
# An output of Morph may have its original's build-id. It is no original.
"$BUILD/morph-optimize" --all prog -o output >out.txt 2>err.txt || fail "no output: $(cat err.txt)"
with output
package outputs first 1
taken 1 "an output" --packages=outputs
# A symbolic link in a package has no bytes; the file it names counts.
with prog
mv tree/usr/bin/prog tree/usr/bin/real
ln -s real tree/usr/bin/prog
package linked tool 1
taken 0 "a link in a package" --packages=linked
for how in gzip zstd none; do
	mkdir "by-$how"
	dpkg-deb -R linked/tool_1_amd64.deb tree
	if dpkg-deb --root-owner-group -Z$how -b tree "by-$how/tool_1_amd64.deb" >dpkg.txt 2>&1; then
		taken 0 "a package by $how" --packages="by-$how"
	else
		left_out="$left_out packages by $how (this dpkg-deb makes none)"
	fi
	rm -r tree
done

# Other makers of packages than dpkg-deb write archives by POSIX, whose long names stand in headers of their own.
mkdir -p by-posix posix "tree/usr/bin/$(printf 'long%.0s' {1..60})"
cp prog tree/usr/bin/long*/
(cd posix && ar x ../linked/tool_1_amd64.deb && tar --format=pax -C ../tree -cJf data.tar.xz . &&
	ar rc ../by-posix/tool_1_amd64.deb debian-binary control.tar.xz data.tar.xz) || fail "no package by POSIX"
rm -r tree
taken 0 "a package by POSIX" --packages=by-posix

# ---- mirrors: the archive of debug information lists build-ids, and depends on the package
mkdir mirror debug
with second prog
package mirror/pool/main/t/tool tool 1:2.0-1+deb12u1
with second
package mirror/pool/main/o/other other 3
mkdir -p tree/usr/lib/debug && cp prog.debug tree/usr/lib/debug/
package debug/pool/main/t/tool tool-dbgsym 1:2.0-1+deb12u1 "Depends: tool (= 1:2.0-1+deb12u1)" \
	"Build-Ids: 00112233445566778899aabbccddeeff00112233 $id" "Auto-Built-Package: debug-symbols"
# fresh FILE: a changed file has a later time. Servers compare seconds, and this test changes files faster.
later=$(($(date +%s) + 86400))
fresh() {
	later=$((later + 60))
	touch -d "@$later" "$1"
}
# index ROOT SUITE: the archive's index
index() {
	mkdir -p "$1/dists/$2/main/binary-amd64"
	(cd "$1" && dpkg-scanpackages --multiversion pool 2>../scan.txt) >"$1/dists/$2/main/binary-amd64/Packages"
	[ -s "$1/dists/$2/main/binary-amd64/Packages" ] || fail "no index: $(cat scan.txt)"
	fresh "$1/dists/$2/main/binary-amd64/Packages"
}
index mirror bookworm
index debug bookworm-debug
taken 0 "mirrors on disk" --packages="$dir/debug bookworm-debug" --packages="$dir/mirror bookworm main contrib"
says out.txt "mirror/dists/bookworm/contrib/binary-amd64/Packages: there is no such index$"
taken 1 "no archive of debug information" --packages="$dir/mirror bookworm"
says out.txt ": no package lists this build-id$"
taken 1 "the archive of debug information alone" --packages="$dir/debug bookworm-debug"
says out.txt ": it is in tool 1:2.0-1+deb12u1, which no index has$"

# ---- by http
port=$(free_port)
python3 -u -m http.server --bind 127.0.0.1 --directory "$dir" "$port" >http.log 2>&1 &
server=$!
at_exit "kill $server 2>err.txt; stop_all"
wait_for() {
	for ((i = 0; i < 100; i++)); do
		curl -s -o curl.txt "http://127.0.0.1:$port/" && return
		sleep 0.1
	done
	fail "no http server: $(cat http.log)"
}
wait_for
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
url=http://127.0.0.1:$port
gzip -k mirror/dists/bookworm/main/binary-amd64/Packages
xz -k debug/dists/bookworm-debug/main/binary-amd64/Packages
by_http=(--packages="$url/debug bookworm-debug main" --packages="$url/mirror/ bookworm")
taken 0 "mirrors by http" "${by_http[@]}"
[ "$(asked Packages.xz 200)" = 1 ] && [ "$(asked Packages.gz 200)" = 1 ] || fail "the indexes were not read: $(cat http.log)"
taken 0 "mirrors by http again" "${by_http[@]}"
[ "$(asked Packages.xz 200)" = 1 ] && [ "$(asked Packages.xz 304)" -ge 1 ] || fail "an index was read again: $(cat http.log)"
# An index that changed is read again.
sed -i 's/^Filename: .*tool.*/Filename: pool\/gone.deb/' mirror/dists/bookworm/main/binary-amd64/Packages
fresh mirror/dists/bookworm/main/binary-amd64/Packages
gzip -kf mirror/dists/bookworm/main/binary-amd64/Packages
taken 1 "a package that is gone" "${by_http[@]}"
says out.txt "pool/gone.deb: the server says 404$"
rm mirror/dists/bookworm/main/binary-amd64/Packages.gz
for what in "Filename: ../../../etc/passwd" "Filename: /etc/passwd" "Filename: pool/a b.deb"; do
	sed -i "s#^Filename: .*\(gone\|passwd\|a b\).*#$what#" mirror/dists/bookworm/main/binary-amd64/Packages
	taken 1 "an index with $what" --packages="$dir/mirror bookworm" --packages="$dir/debug bookworm-debug"
	says out.txt ": it is in tool .*, which no index has$"
done
index mirror bookworm
deb=$(echo mirror/pool/main/t/tool/*.deb)
cp "$deb" whole.deb
printf x >>"$deb"
taken 1 "a package of another size" --packages="$dir/mirror bookworm" --packages="$dir/debug bookworm-debug"
says out.txt "tool_.*deb: has [0-9]* bytes, not the [0-9]* that the index says$"
taken 1 "a package of another size, by http" "${by_http[@]}"
says out.txt "tool_.*: is larger than it should be"
cp whole.deb "$deb"
printf '\x01' | dd of="$deb" bs=1 seek=20 conv=notrunc status=none
taken 1 "a package with another hash" "${by_http[@]}"
says out.txt "tool_.*deb: has another SHA-256 than the index says$"
# The index may be wrong, too: then the code decides.
cp bad/cut_1_amd64.deb "$deb"
sed -i "/^Filename: .*tool/,/^\$/{s/^Size: .*/Size: $(stat -c %s "$deb")/; s/^SHA256: .*/SHA256: $(sha256sum "$deb" | cut -d' ' -f1)/}" \
	mirror/dists/bookworm/main/binary-amd64/Packages
fresh mirror/dists/bookworm/main/binary-amd64/Packages
taken 1 "a package cut short that the index describes" "${by_http[@]}"
says out.txt "is damaged or cut short$"
cp whole.deb "$deb"
index mirror bookworm
rm debug/dists/bookworm-debug/main/binary-amd64/Packages
head -c 200 debug/dists/bookworm-debug/main/binary-amd64/Packages.xz >cut && mv cut debug/dists/bookworm-debug/main/binary-amd64/Packages.xz
fresh debug/dists/bookworm-debug/main/binary-amd64/Packages.xz
taken 1 "an index cut short" "${by_http[@]}"
says out.txt "is damaged or cut short$"
index debug bookworm-debug
xz -kf debug/dists/bookworm-debug/main/binary-amd64/Packages
taken 0 "whole mirrors" "${by_http[@]}"

# A folder with an index of its own, as dpkg-scanpackages makes it; by http there is no other way.
mkdir flat
cp "$deb" debug/pool/main/t/tool/*.deb flat/
(cd flat && dpkg-scanpackages . 2>../scan.txt) | gzip >flat/Packages.gz
taken 0 "a folder with an index, by http" --packages="$url/flat ./"
taken 0 "a folder with an index" --packages=flat
taken 1 "a folder without an index, by http" --packages="$url/folder"
says out.txt "/folder/Packages: there is no such index$"

# ---- no archive of debug information: the mirror's Contents say which packages have a file of the module's name
printf '%s\n' "usr/bin/prog extra					    misc/nothing" "bin/prog  	utils/other,utils/tool" "usr/share/doc/prog misc/nothing" |
	gzip >mirror/dists/bookworm/main/Contents-amd64.gz
taken 1 "a file without a name" --packages="$url/mirror bookworm"
! grep -q Contents http.log || fail "the Contents were read for nothing"
known_as() {
	fleet_sql "$ADMIN" "UPDATE fleet.module_host SET name = '$1' WHERE substr(module, 9) = '\\x$id'"
}
known_as /usr/bin/prog
taken 0 "a file with a name" --packages="$url/mirror bookworm"
known_as /opt/prog
taken 1 "a file with another name" --packages="$url/mirror bookworm"
says out.txt ": no package lists this build-id$"
head -c 32 /dev/urandom >salt
known_as "#$(printf /usr/bin/prog | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$(od -An -v -tx1 salt | tr -d ' \n')" | sed 's/.*= //' | cut -c1-32)"
taken 1 "a hashed name without the salt" --packages="$url/mirror bookworm"
taken 0 "a hashed name" --packages="$url/mirror bookworm" --salt-file=salt
rm "$deb" && index mirror bookworm
taken 1 "another version of the package" --packages="$url/mirror bookworm" --salt-file=salt
says out.txt ": other has another version of the file$"
cp whole.deb "$deb" && index mirror bookworm
gzip -dc mirror/dists/bookworm/main/Contents-amd64.gz | head -c 30 >mirror/dists/bookworm/main/Contents-amd64
rm mirror/dists/bookworm/main/Contents-amd64.gz
taken 1 "Contents cut short" --packages="$dir/mirror bookworm" --salt-file=salt
says out.txt "Contents-amd64: is damaged or cut short$"
known_as ""

# ---- the server is gone: the job waits
kill $server
wait $server 2>/dev/null
at_exit stop_all
taken 75 "no http server" "${by_http[@]}"
says out.txt "^$id .*: no original with .*: $url/.*curl: "
forget_job
taken 0 "no http server, but a folder" "${by_http[@]}" --packages=folder
taken 0 "directories first" --originals=originals "${by_http[@]}"
! grep -q "$url" out.txt || fail "packages were asked for: $(cat out.txt)"

# ---- options
command_ends 2 "no directory" "$fleet" build -d "$(<maker.conn)" --once --packages=nowhere
says err.txt 'packages=nowhere: .*No such file'
command_ends 2 "another scheme" "$fleet" build -d "$(<maker.conn)" --once --packages=ftp://127.0.0.1/x
command_ends 2 "a suite that leads out" "$fleet" build -d "$(<maker.conn)" --once --packages="$dir ../.. main"
mkdir -m 777 open-cache
command_ends 1 "a cache that others write" "$fleet" build -d "$(<maker.conn)" --once --packages=folder --package-cache=open-cache
says err.txt 'open-cache: other users can write to it$'
finish
