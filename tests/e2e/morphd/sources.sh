#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone: it samples
# --source=auto takes the best source that works. If the kernel, the rights or the build do not
# allow a source, it takes the next one and says why. The rate is measured unless given.
. "$(dirname "$0")/../lib.sh"
MORPHD=$BUILD/morphd
cd "$TMPDIR" || exit 1

"$MORPHD" run --source=perf --record probe -- true 2> err || {
	echo "no sampling on this machine: $(head -n 1 err)"
	exit 77
}

# A build without BPF falls back to the next best source. This works on every machine.
read -ra libs <<< "$(pkg-config --libs libelf libdw sqlite3 libxxhash jansson zlib)"
read -ra bpf <<< "$(pkg-config --libs libbpf 2> /dev/null)"
if ${CC:-gcc} -O1 -D_GNU_SOURCE -I"$root" -c "$root/daemon/source/source_bpf.c" -o plain.o &&
	${CC:-gcc} -O1 -D_GNU_SOURCE -I"$root" -o without "$root/daemon/morphd/morphd.c" plain.o \
		"$BUILD/daemon.a" "$BUILD/libprof.a" "${libs[@]}" "${bpf[@]}" -lZydis -lZycore -lm \
		-lpthread 2> err; then
	./without run --registers=no --db without.db -- true 2> err || fail "a build without bpf: $(cat err)"
	why=$(sqlite3 -readonly without.db "SELECT collector || ': ' || why FROM session")
	[[ $why == "perf: kmod: samples the whole machine; bpf: this morphd was built without it; perf: "* ]] ||
		fail "a build without bpf: $why"
	./without run --source=bpf --db none.db -- touch ran 2> err && fail "bpf without bpf"
	grep -qx "morphd: this morphd was built without it" err || fail "$(cat err)"
	[ ! -e ran ] || fail "a command ran that could not be sampled"
else
	# An archive built with a sanitizer does not link here.
	echo "skip: a build without bpf does not link: $(grep -v '^/' err | head -n 1 | cut -c 1-100)"
fi

# The kernel module samples the whole machine and allows one reader. Test each obstacle.
if [ ! -e /dev/morphmon ]; then
	"$MORPHD" run --source=kmod --db none.db -- touch ran 2> err && fail "kmod without a device"
	[ "$(cat err)" = "morphd: no /dev/morphmon: morphmon.ko is not loaded" ] || fail "no device: $(cat err)"
fi
${CC:-gcc} -O1 -D_GNU_SOURCE -I"$root" -shared -fPIC -o nodevice.so "$root/tests/e2e/morphd/nodevice.c" || exit 1
# no_device WHAT MESSAGE: EACCES, EBUSY, EMFILE, and a module of another version
no_device() {
	NODEVICE=$1 LD_PRELOAD=$PWD/nodevice.so "$MORPHD" run --source=kmod --db none.db -- touch ran 2> err &&
		fail "kmod in spite of $1"
	grep -q "ASan runtime" err && return
	[ "$(cat err)" = "morphd: $2" ] || fail "kmod, $1: $(cat err)"
}
no_device 13 "/dev/morphmon: only its owner and root may open it"
no_device 16 "/dev/morphmon is in use by another reader"
no_device 24 "/dev/morphmon: cannot open: Too many open files"
abi=$(sed -n 's/#define MORPH_ABI_M[AJIN]*OR \([0-9]*\).*/\1/p' "$root/kmod/uapi/morph_abi.h" | paste -sd.)
no_device abi "morphmon.ko speaks record format 7.3, this morphd $abi"
NODEVICE=old LD_PRELOAD=$PWD/nodevice.so "$MORPHD" run --source=kmod --registers=paths --db none.db -- \
	touch ran 2> err && fail "registers of a module of 1.3"
grep -q "ASan runtime" err ||
	[ "$(cat err)" = "morphd: morphmon.ko speaks record format 1.3, registers came with 1.4" ] ||
	fail "kmod 1.3 and registers: $(cat err)"
# A module of an earlier format gets no request for flags, but one for the other registers.
NODEVICE=flagless LD_PRELOAD=$PWD/nodevice.so "$MORPHD" run --source=kmod --registers=branches --db none.db -- \
	touch ran 2> err && fail "registers without rights"
grep -q "ASan runtime" err || grep -q "CAP_PERFMON is needed" err || fail "kmod 1.11 and flags: $(cat err)"
[ ! -e ran ] || fail "a command ran that could not be sampled"

[ $EUID = 0 ] || {
	echo "skip: the rest needs root"
	exit $((nr_failed > 0))
}

# daemon NAME COMMAND...: run until there are samples; leaves NAME.db, NAME.err, NAME.json
daemon() {
	local name=$1 pid
	shift
	rm -f "$name".db*
	"$@" --interval 0.2 --db "$name.db" 2> "$name.err" &
	pid=$!
	until [ -s "$name.db" ] && [ -n "$(sqlite3 -readonly "$name.db" \
		"SELECT key FROM session" 2> /dev/null)" ]; do
		kill -0 $pid 2> /dev/null || break
		sleep 0.05
	done
	# Repeat until there are some samples.
	for _ in {1..100}; do
		sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'
		! kill -0 $pid 2> /dev/null || "$BUILD/morph-stats" status --db "$name.db" > /dev/null 2>&1 || continue
		break
	done
	kill -TERM $pid 2> /dev/null
	wait $pid || fail "$name: exit $?: $(cat "$name.err")"
	"$BUILD/morph-stats" status --db "$name.db" --json > "$name.json" ||
		fail "$name: no samples: $(cat "$name.err")"
}
session() { jq -r ".sessions[0].$2" "$1.json"; }
# expect_why NAME COLLECTOR TEXT: the session has this collector, and TEXT as a reason
expect_why() {
	[ "$(session "$1" collector)" = "$2" ] || fail "$1: $(session "$1" collector), not $2"
	[[ $(session "$1" why) == *"$3"* ]] || fail "$1: \"$3\" is not in: $(session "$1" why)"
}

# A measured rate is prime, below the promised cost, and reported everywhere.
daemon plain "$MORPHD"
rate=$(session plain rate_hz)
[ "$rate" -ge 11 ] && [ "$rate" -le 1021 ] || fail "a rate of $rate Hz"
[ "$(factor "$rate" | wc -w)" = 2 ] || fail "$rate Hz is not a prime number"
why=$(session plain why)
[[ $why =~ $rate\ Hz,\ ([0-9]+\.[0-9]+)\ %\ of\ each\ CPU:\ a\ sample\ costs\ ([0-9.]+)\ us ]] ||
	fail "the measured cost is not said: $why"
[ "$rate" = 11 ] || [ "$(echo "${BASH_REMATCH[1]:-1} < 0.3" | bc)" = 1 ] ||
	fail "${BASH_REMATCH[1]} % of each CPU"
grep -qF "morphd: ${why%%; the*}" plain.err || grep -qF "$rate Hz" plain.err ||
	fail "the rate is not in the log: $(cat plain.err)"
"$BUILD/morph-stats" status --db plain.db > text
grep -qF "at $rate Hz" text && grep -qF "a sample costs" text || fail "status: $(cat text)"
best=$(session plain collector)
echo "$best: $why"

if [ -e /dev/morphmon ]; then
	[ "$best" = kmod ] || fail "not kmod: $why"
	[[ $why == "kmod: wakes no idle CPU; "* ]] || fail "why kmod: $why"
	# Keep the device open, so that the other sources are tried.
	exec 9<> /dev/morphmon
	no="kmod: /dev/morphmon is in use by another reader"
	daemon plain "$MORPHD"
	best=$(session plain collector)
	why=$(session plain why)
else
	no="kmod: no /dev/morphmon: morphmon.ko is not loaded"
fi
[[ $why == "$no; "* ]] || fail "why not kmod: $why"

# A given rate is used as it is.
daemon asked "$MORPHD" --rate 997
[ "$(session asked rate_hz)" = 997 ] || fail "--rate 997: $(session asked rate_hz) Hz"
[[ $(session asked why) != *"a sample costs"* ]] || fail "measured in spite of --rate"

# Each obstacle for bpf, one after the other.
if ! "$MORPHD" run --source=bpf --db probe.db -- true 2> err; then
	echo "skip: bpf: $(head -n 1 err)"
	exit $((nr_failed > 0))
fi
# Registers do not change which source is taken.
daemon registers "$MORPHD" --registers=paths
[ "$(session registers collector)" = "$best" ] || fail "with registers: $(session registers why)"

[ "$best" = bpf ] || [[ $why == *"; bpf: reads no branch stacks; perf: "* ]] || fail "not bpf: $why"

for times in 1 10 100; do
	rm -f user.db*
	"$MORPHD" run --source=bpf --no-kernel --rate 4000 --db user.db --json -- \
		sh -c 'i=0; while [ $i -lt $(($0 * 100000)) ]; do i=$((i+1)); done' $times > user.out 2> err ||
		fail "$(cat err)"
	[ "$(jq .attributed user.out)" -le 20 ] || break
done
[ "$(sqlite3 -readonly user.db "SELECT event LIKE '%:u' FROM session")" = 1 ] || fail "--no-kernel"
[ "$(sqlite3 -readonly user.db "SELECT count(*) FROM module WHERE kind = 1")" = 0 ] ||
	fail "kernel samples in spite of --no-kernel"
[ "$(jq .attributed user.out)" -gt 20 ] || fail "--no-kernel: $(jq .attributed user.out) samples"

if command -v setpriv > /dev/null; then
	daemon caps setpriv --bounding-set=-bpf,-sys_admin "$MORPHD"
	expect_why caps perf "bpf: not allowed: needs root, or CAP_BPF and CAP_PERFMON; perf: "
	setpriv --bounding-set=-bpf,-sys_admin "$MORPHD" run --source=bpf --db no.db -- touch ran 2> err &&
		fail "bpf without CAP_BPF"
	[ "$(cat err)" = "morphd: not allowed: needs root, or CAP_BPF and CAP_PERFMON" ] ||
		fail "without CAP_BPF: $(cat err)"
	# In a locked-down kernel, no capability helps.
	cat > lockdown.sh <<'SH'
mount -t tmpfs none /sys/kernel/security || exit 99
echo 'none integrity [confidentiality]' > /sys/kernel/security/lockdown
exec "$@"
SH
	if [ -d /sys/kernel/security ] && unshare -m sh -c 'mount -t tmpfs none /sys/kernel/security'; then
		daemon lockdown unshare -m sh lockdown.sh setpriv --bounding-set=-bpf,-sys_admin "$MORPHD"
		expect_why lockdown perf "bpf: the kernel is locked down; perf: "
	else
		echo "skip: no securityfs here"
	fi
	# An ordinary user samples a command.
	user=$(mktemp -d /tmp/morph-user.XXXXXX) || exit 1
	at_exit 'rm -rf "$user"'
	chmod 777 "$user" && cp "$MORPHD" "$user/"
	if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ]; then
		(cd "$user" && setpriv --reuid=65534 --regid=65534 --clear-groups ./morphd run --registers=no --db db -- \
			sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done') 2> err ||
			grep -q 'perf_event_mlock_kb is used up' err || fail "an ordinary user: $(cat err)"
		[ ! -s "$user/db" ] || [[ $(sqlite3 -readonly "$user/db" "SELECT why FROM session") == \
			"kmod: samples the whole machine; bpf: not allowed"* ]] || fail "an ordinary user's session does not say why not bpf"
	fi
fi
if unshare -m true 2> /dev/null; then
	# A kernel without a description of its types.
	daemon btf unshare -m sh -c 'mount -t tmpfs none /sys/kernel/btf && exec "$@"' - "$MORPHD"
	expect_why btf perf "bpf: this kernel has no type information (BTF); perf: "
fi
if unshare -fp --mount-proc true 2> /dev/null; then
	unshare -fp --mount-proc "$MORPHD" run --registers=no --db pid.db -- \
		sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done' 2> err || fail "PID namespace: $(cat err)"
	[[ $(sqlite3 -readonly pid.db "SELECT collector || why FROM session") == \
		"perfkmod: samples the whole machine; bpf: morphd runs in a PID namespace; perf: "* ]] || fail "in a PID namespace: not perf"
	unshare -fp --mount-proc "$MORPHD" run --source=bpf --db pid.db -- true 2> err &&
		fail "bpf in a PID namespace"
fi
# Both sources need perf_event_open.
${CC:-gcc} -o deny "$root/tests/e2e/morphd/deny.c" || exit 1
for source in auto bpf perf; do
	./deny "$MORPHD" run --source=$source --db no.db -- touch ran 2> err && fail "$source when denied"
	[ "$(wc -l < err)" = 1 ] && grep -q "perf_event_open\|perf_event_paranoid" err ||
		fail "$source when denied: $(cat err)"
done
[ ! -e ran ] || fail "a command ran that could not be sampled"
[ $nr_failed = 0 ] && echo ok
exit $((nr_failed > 0))
