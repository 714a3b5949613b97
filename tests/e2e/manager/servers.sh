#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: audits of servers, a minute
# morph-worker audits a server by its rule's recipe (command, ready, client), which `morph watch` or a person wrote:
# a faster version is adopted, a planted slower one is not, a server that does not start fails the round; nothing
# stays behind.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3 python3
manager_scratch servers
rm -f db db-*
gcc -O2 -Wl,--emit-relocs -o original "$root/tests/e2e/manager/server.c" || exit 1
cp original prog
profile prog 12000 work
mkdir -m 777 run
cat >client.py <<'END'
"""client.py SOCKET REQUESTS"""
import socket
import sys
for i in range(int(sys.argv[2])):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    if not s.recv(100):
        sys.exit("no answer")
print(sys.argv[2], "requests")
END
recipe() { # SOCKET OPTION...
	rule "mode = adopt" "command = $dir/prog $dir/run/s" "ready = unix:$dir/run/$1" \
		"client = python3 $dir/client.py $dir/run/s 40" "audit-time = 120" "${@:2}"
}
nothing_left() {
	# The supervisor of an audit needs a moment.
	awaits "! cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -q '$dir/[p]rog $dir/run/s'" ||
		fail "$1: a server is left"
}

# ---- from the command line alone
command_ends 0 "morph watch" "$BUILD/morph" --db=db watch --policy=etc --adopt --ready="unix:$dir/run/s" \
	--client="python3 $dir/client.py $dir/run/s 40" add ./prog -- "$dir/prog" "$dir/run/s"
says etc/watch.d/prog.conf '^audit = server$' "morph watch"
grep -q '^train' etc/watch.d/prog.conf && fail "morph watch: a server that trains: $(cat etc/watch.d/prog.conf)"
work 0 "watched" --now
state_is adopted "watched"
history_is "ask:watch profile:done write:done verify:done audit:faster adopt:done" "watched"
cmp -s prog original && fail "watched: faster, and not in place"
nothing_left "watched"
forget

recipe s
work 0 "faster" --now
state_is adopted "faster"
history_is "ask:watch profile:done write:done verify:done audit:faster adopt:done" "faster"
[ "$(db 'SELECT lowest > 1 FROM job')" = 1 ] || fail "faster: $(db 'SELECT ratio, lowest, highest FROM job')"
[ "$(./prog work 50)" = "$(./original work 50)" ] || fail "faster: another output"
cmp -s prog original && fail "faster, and not in place"
nothing_left "faster"

# ---- slower: waits were planted in the version
forget
mkdir bin
cp "$BUILD/morph-worker" bin/
ln -s "$BUILD/morph-audit" bin/
cat >bin/morph-optimize <<END
#!/bin/sh
case \$1 in verify | adopt | restore) exec "$BUILD/morph-optimize" "\$@" ;; esac
exec "$BUILD/morph-optimize" --adjust=work:wait=900 "\$@"
END
chmod 755 bin/morph-optimize
worker=$dir/bin/morph-worker
work 0 "slower" --now
state_is not-faster "slower"
history_is "ask:watch profile:done write:done verify:done audit:slower" "slower"
cmp prog original || fail "slower, and yet in place"
nothing_left "slower"

# ---- never ready
forget
worker=$BUILD/morph-worker
recipe other
sed -i 's/audit-time = 120/audit-time = 20/' etc/watch.d/prog.conf
work 0 "never ready" --now
state_is failed "never ready"
cmp prog original || fail "never ready, and yet in place"
nothing_left "never ready"
finish
