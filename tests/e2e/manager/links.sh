#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Root's worker, and a user who owns a directory of a program's path: between two programs of a round the user puts
# a symbolic link in the directory's place. It leads to a file of root's with the very bytes of the user's file. Root's
# file stays as it is, in an adoption and when an original is put back. A training cannot hand a file of root's to the
# worker, which would copy it for all to read.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3 setpriv python3
[ "$(id -u)" = 0 ] || {
	echo "skip: needs root, to be two users"
	exit 77
}
manager_scratch links
mkdir -p home/bin rootdir secrets
as_user() { setpriv --reuid=nobody --regid=nogroup --clear-groups --no-new-privs "$@"; }
printf '%s\n' "program = $dir/home/bin/prog" "mode = adopt" "user = root" "$(by_speed)" >etc/watch.d/prog.conf
cat >speed <<END
#!/bin/sh
if cmp -s "$dir/home/bin/prog" "$dir/original"; then echo speed 100; else echo speed 120; fi
END
chmod 755 speed

# as_service.py PROGRAM ARG...: without openat2(), as systemd runs a service with RestrictSUIDSGID=.
cat >as_service.py <<'END'
import ctypes
import os
import struct
import sys
libc = ctypes.CDLL(None, use_errno=True)
SYS_OPENAT2, ENOSYS = 437, 38
code = b"".join(struct.pack("HBBI", *line) for line in (
    (0x20, 0, 0, 0),                    # the number of the system call
    (0x15, 0, 1, SYS_OPENAT2),
    (0x06, 0, 0, 0x00050000 | ENOSYS),
    (0x06, 0, 0, 0x7FFF0000)))          # allowed
program = ctypes.create_string_buffer(code, len(code))
filter = ctypes.create_string_buffer(struct.pack("H6xQ", len(code) // 8, ctypes.addressof(program)))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(filter))):
    sys.exit("prctl: " + os.strerror(ctypes.get_errno()))
os.execv(sys.argv[1], sys.argv[1:])
END

# Programs of Morph that run ./hook once, as the user, before they adopt or restore.
mkdir bin
cp "$BUILD/morph-worker" bin/
ln -s "$BUILD/morph-stats" bin/
audits_by_speed bin
cat >bin/morph-optimize <<END
#!/bin/sh
if [ "\$(cat "$dir/when" 2>/dev/null)" = "\$1" ]; then
	rm "$dir/when"
	setpriv --reuid=nobody --regid=nogroup --clear-groups "$dir/hook"
fi
case "\$1" in
adopt | restore) exec python3 "$dir/as_service.py" "$BUILD/morph-optimize" "\$@" ;;
esac
exec "$BUILD/morph-optimize" "\$@"
END
cat >hook <<END
#!/bin/sh
cd "$dir/home" && mv bin real && ln -s "$dir/rootdir" bin && touch "$dir/home/swapped"
END
chmod 755 bin/morph-optimize hook
worker=$dir/bin/morph-worker

begin() { # FILE: it is root's and the user's
	rm -rf home/bin home/real home/swapped rootdir/*
	mkdir home/bin
	cp original home/bin/prog
	cp "$1" rootdir/prog
	chown -R nobody:nogroup home
}
# unchanged FILE WHAT: root's file
unchanged() {
	[ -e home/swapped ] || fail "$2: the directory was not swapped"
	cmp -s rootdir/prog "$1" || fail "$2: root's file was replaced"
	[ "$(stat -c %U:%a rootdir/prog)" = root:755 ] || fail "$2: $(stat -c %U:%a rootdir/prog)"
	[ "$(ls -A rootdir)" = prog ] || fail "$2: left behind: $(ls -A rootdir)"
}
begin original
profile home/bin/prog 12000

# ---- adopt
echo adopt >when
work 0 "a link before the adoption" --now
unchanged original "a link before the adoption"
says err.txt 'a directory of this path is a symbolic link: not replaced' "a link before the adoption"
work 0 "a link before the adoption, later" --now
unchanged original "a link before the adoption, later"
[ "$(db "SELECT count(*) FROM job WHERE state IN ('adopted', 'kept')")" = 0 ] || fail "called adopted: $(db 'SELECT * FROM job')"

# ---- restore: root's own file is a version of Morph, which is in use
rm -rf state backup
db "DELETE FROM job; DELETE FROM history; DELETE FROM rejected_layout"
begin original
work 0 "adopted" --now
[ "$(db 'SELECT state FROM job')" = adopted ] || fail "adopted: $(db 'SELECT state, detail FROM job')"
cp home/bin/prog version && chown root:root version && chmod 755 version
cp version rootdir/prog
touch cores/core.prog.0.0123.77.1
echo restore >when
work 0 "a link before the original is put back" --now
unchanged version "a link before the original is put back"
rm -f home/bin && as_user mv home/real home/bin
rm -f cores/*

# ---- what a training leaves is copied for all to read: not a link, nor a second name of a file of root's
rm -rf state backup
begin original
install -m 600 original secrets/key
sed -i '2i [ "$1" != train ] || exec "'"$dir"'/leak" "${3#--profile=}"' bin/morph-optimize
printf '%s\n' "program = $dir/home/bin/prog" "mode = advise" "user = root" "train = $dir/home/bin/prog 1" \
	>etc/watch.d/prog.conf
for leak in "ln -f" "ln -sf" mkfifo cp; do
	printf '#!/bin/sh\n%s "%s" "$1"\n' "${leak/mkfifo/mkfifo \"\$1\"; :}" "$dir/secrets/key" >leak
	chmod 755 leak
	rm -rf state
	db "DELETE FROM job; DELETE FROM history; DELETE FROM rejected_layout"
	work 0 "a training that leaves a file by $leak" --now
	kept=$(find state -type f ! -path '*/train/*' -size +1k)
	case $leak in
	cp) # It is the user's own file, but no store.
		[ "$(db 'SELECT state FROM job')" = failed ] || fail "by $leak: $(db 'SELECT state, detail FROM job')"
		;;
	*)
		[ -z "$kept" ] || fail "by $leak: taken: $kept"
		[ "$(db 'SELECT state FROM job')" = failed ] || fail "by $leak: $(db 'SELECT state, detail FROM job')"
		says err.txt 'cannot be taken over' "by $leak"
		;;
	esac
done
finish
