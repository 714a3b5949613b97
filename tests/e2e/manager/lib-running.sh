# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What live-everyday.sh and live-library.sh have in common: a service whose running processes get versions of $subject.
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3
[ "$(id -u)" = 0 ] || {
	echo "skip: needs root, for the kernel's account of CPU time"
	exit 77
}
live_policy() {
	printf '%s\n' "mode = adopt" "only = $dir/$subject" "share = 50%" "counting = yes" "cost = 100%" "$@" \
		>etc/morph.conf
}
m() { # STATUS WHAT ARGS
	command_ends "$1" "$2" "$BUILD/morph" --db=db --backup-dir=backup "${@:3}"
}
# A process that is younger than 30 seconds is not taken for one that stays (600 s at this pace).
grows_old() {
	awaits "[ \$(ps -o etimes= -p $service) -ge 31 ]"
}
# versions_in PID...: what is in use in these processes, such as "counting counting"
versions_in() {
	local pid
	for pid; do
		"$BUILD/morph" live --json status "$pid" | jq -r '.processes[] | select(.state == "in use").output | split("/")[-1]'
	done | xargs
}
# has_text PID: the code of $subject in the process is the original's, byte for byte
has_text() {
	local range start end off
	range=$(awk -v f="$dir/$subject" '$2 ~ /x/ && $6 == f { print $1, $3; exit }' "/proc/$1/maps")
	start=$((16#${range%%-*})) off=$((16#${range##* }))
	range=${range#*-}
	end=$((16#${range%% *}))
	cmp <(dd if="/proc/$1/mem" bs=4096 skip=$((start / 4096)) count=$(((end - start) / 4096)) 2>/dev/null) \
		<(tail -c +$((off + 1)) original | head -c $((end - start)))
}
# have_text WHAT PID...: so it is in these processes, and no version is in use
have_text() {
	local pid
	for pid in "${@:2}"; do
		has_text "$pid" || fail "$1: process $pid has other code"
	done
	[ -z "$(versions_in "${@:2}")" ] || fail "$1: in use: $(versions_in "${@:2}")"
}
put_down() { # the worker, by a signal
	kill "-$1" "$worker_pid" 2>/dev/null
	wait "$worker_pid" 2>/dev/null
}
