# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# Shared by the stages in the machine; sourced. Checks print one line each;
# other functions query the service.
set -u
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
files=/root/files
db=/var/lib/morph/morph.db
log=/root/stage.log

# check WHAT COMMAND...: print one line, and COMMAND's output if it fails
check() {
	local what=$1
	shift
	if "$@" >"$log" 2>&1; then
		echo "ok    $what"
	else
		echo "FAIL  $what"
		tail -n 15 "$log" | cut -c1-200 | sed 's/^/      /'
	fi
}

# said PATTERN: the last command's output matches
said() {
	grep -qE -e "$1" "$log" || { echo "no '$1' in: $(tail -n 5 "$log")"; return 1; }
}

# within SECONDS COMMAND...: COMMAND succeeds within SECONDS; an emulated machine is slow
within() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 1
	done
}

status() { morph-stats --db="$db" status --json; }
# samples_of PATH: the number of samples; 0 without a database
samples_of() {
	local n
	n=$(morph-stats --db="$db" query --json 2>/dev/null |
		jq --arg m "$1" '[.rows[] | select(.module == $m).samples] | add // 0') || n=0
	echo "${n:-0}"
}
more_of() { [ "$(samples_of "$1")" -gt "$2" ]; }
# Source and rate of the last session.
collector() { status | jq -r '.sessions | max_by(.start_s) | .collector'; }
rate() { status | jq -r '.sessions | max_by(.start_s) | .rate_hz'; }
rate_is() { [ "$(rate)" = "$1" ]; }
pid() { systemctl show -P MainPID morphd; }
# Never 0, which would make kill signal the whole process group.
main_pid() { pid | sed 's/^0$/none/'; }
is_other_pid() { [ "$(pid)" != 0 ] && [ "$(pid)" != "$1" ] && systemctl -q is-active morphd; }
is_pid() { [ "$(pid)" = "$1" ]; }
collects_with() { [ "$(collector)" = "$1" ] || { echo "with $(collector)"; return 1; }; }
# The service runs; otherwise print its last messages.
runs() { systemctl is-active morphd || { journalctl -q -b -o cat -u morphd | tail -n 8; false; }; }
is_gone() { [ ! -e "$1" ]; }
fails() { ! "$@"; }

# A busy real program that spends most of its time in its own code.
compress() { timeout "$1" gzip -9 </dev/urandom >/dev/null; [ $? = 124 ]; }
# grows COUNT: gzip's samples grow beyond COUNT; repeat the work until they do
grows() {
	local i
	for ((i = 0; i < 30; i++)); do
		compress 10
		! more_of /usr/bin/gzip "$1" || return 0
	done
	echo "$(samples_of /usr/bin/gzip) samples, as many as before: $1"
	return 1
}

# The whole machine: everything has started, no unit has failed.
has_started() { [ "$(systemctl is-system-running)" != starting ]; }
is_sound() {
	within 300 has_started
	[ "$(systemctl is-system-running)" = running ] || { systemctl --failed --no-legend; return 1; }
}

# no_complaint [PATTERN]: neither systemd nor morphd has reported a problem with morphd, except for
# messages that match PATTERN.
no_complaint() {
	local all wrong='cannot|fail|not allowed|denied|malformed|corrupt|without a sandbox|error|skipped'
	all=$( (journalctl -q -b -p warning -o cat -u morphd
		journalctl -q -b -o cat -u morphd | grep '^morphd: ' | grep -iE "$wrong") |
		grep -vE "${1:-^$}" | sort -u)
	[ -z "$all" ] || { echo "$all"; return 1; }
}

# Also no system call that the unit or the sandbox forbids (1326).
kernel_is_well() {
	local trouble='WARNING:|BUG:|Oops|protection fault|Call Trace|soft lockup'
	trouble="$trouble|detected .*stall|self-detected|UBSAN|list_(add|del)|type=1326|refcount_t|blocked for more"
	! journalctl -q -b -k -o cat | grep -E "$trouble|Bad page|corruption"
}

# The unit that runs the stages, one at each start of the machine; while the disk is made.
start_stages() {
	cat >/etc/systemd/system/stage.service <<'UNIT'
[Unit]
Description=The next stage of the test
After=multi-user.target
[Service]
ExecStart=/bin/bash /root/files/next.sh
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS1
[Install]
WantedBy=multi-user.target
UNIT
	systemctl -q enable stage.service
}
