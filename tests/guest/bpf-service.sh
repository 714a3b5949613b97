#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: morphd in an emulator, four times
# one kernel
# morphd samples with BPF with the service's rights: another user than root, with the capabilities of its unit and no
# more. Root may do more than these allow, for example list the kernel's modules, so a test as root shows less. The
# first kernel is the oldest: it lacks types that the programs use where they exist. Without the module.
. "$(dirname "$0")/lib.sh"
command -v setpriv >/dev/null || { echo "skip: setpriv is missing"; exit 77; }
[ -e /sys/kernel/btf/vmlinux ] || { echo "skip: this kernel has no BTF"; exit 77; }
caps=$(sed -n 's/^AmbientCapabilities=//p' "$root/daemon/morphd/morphd.service" |
	sed 's/CAP_/+/g; s/ /,/g' | tr '[:upper:]' '[:lower:]')
[ -n "$caps" ] || fail "the unit names no capabilities"
# Debian's kernels allow no service to sample with 3, their default.
was=$(cat /proc/sys/kernel/perf_event_paranoid)
sysctl -qw kernel.perf_event_paranoid=2
trap 'sysctl -qw kernel.perf_event_paranoid="$was"' EXIT
chmod 755 .
mkdir -m 777 db
as_service() {
	setpriv --bounding-set="-all,$caps" --reuid=nobody --regid=nogroup --clear-groups --inh-caps="$caps" \
		--ambient-caps="$caps" --no-new-privs "$@"
}
for options in --registers=no --registers=branches --stacks "--stacks --registers=branches"; do
	# shellcheck disable=SC2086
	as_service "$BUILD/morphd" run --source=bpf --rate=999 $options --db="$PWD/db/${options// /}" --json -- \
		sh -c "gzip -9c $(command -v perl) >/dev/null" >out.json 2>err.txt || fail "$options: exit $?: $(head -n 3 err.txt)"
	grep -qE 'captured [1-9][0-9]* samples of .*, 0 lost' err.txt || fail "$options: $(tail -n 2 err.txt)"
	tail -n 1 err.txt
	# The registers come with all samples of user code: where they are wanted, gzip's branches have ways.
	grep -qE '"ways": \{"samples": [0-9]*' out.json || fail "$options: no ways in $(cat out.json)"
	ways=$(sed -nE 's/.*"ways": ([0-9]+), "failed": 0.*/\1/p' out.json)
	case $options in
	*branches) [ "${ways:-0}" -ge 20 ] || fail "$options: few ways: $(cat out.json)" ;;
	*) [ "${ways:-1}" = 0 ] || fail "$options: ways that nobody asked for" ;;
	esac
done
finish
