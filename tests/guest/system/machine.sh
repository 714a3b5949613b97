# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# The emulated machine: its packages, its disk, its start. Sourced by `run' and by tests/guest/automatic/run; the
# caller is in the top directory and sets $name, for the logs, and $build.
# MORPH_SYSTEM_ACCEL=kvm runs the machine on the processor, if possible.
limit=${MORPH_SYSTEM_TIMEOUT:-1800}
shopt -s nullglob
morph_deb=("$build"/deb/morph_*.deb) dkms_deb=("$build"/deb/morphmon-dkms_*.deb)
[ ${#morph_deb[@]}${#dkms_deb[@]} = 11 ] || { echo "$name: no packages in $build/deb (make deb)" >&2; exit 1; }
command -v qemu-system-x86_64 >/dev/null || {
	echo "$name: qemu-system-x86_64 is missing (scripts/setup --system)" >&2
	exit 1
}
work=$(mktemp -d "${TMPDIR:-/tmp}/morph-system.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/files" "$build/logs"
out=$build/logs/$name
: >"$out.txt"

# Names of the dependencies, without versions and alternatives.
depends=$(for deb in "${morph_deb[0]}" "${dkms_deb[0]}"; do dpkg-deb -f "$deb" Depends; done |
	sed -E 's/\([^)]*\)//g; s/\|[^,]*//g' | tr -s ', \n' ' ')

accel=(-accel "tcg,thread=multi" -cpu max)
[ "${MORPH_SYSTEM_ACCEL:-tcg}" = tcg ] || accel=(-accel "$MORPH_SYSTEM_ACCEL" -cpu host,-arch-capabilities)
words="root=/dev/vda rw console=ttyS0 quiet panic=-1 mitigations=off nowatchdog no_timer_check"
words="$words rcupdate.rcu_cpu_stall_timeout=120 systemd.show_status=0"

# make_disk SCRIPT: the disk, with $work/files; SCRIPT runs with it as the root
make_disk() {
	scripts/package/system-image --depends="$depends jq" "$work" /bin/bash "/root/files/$1" | tee -a "$out.txt"
}

# machine CONSOLE WORDS: run the machine until it switches itself off; its second serial line is the output
machine() {
	timeout -k 5 "$limit" qemu-system-x86_64 -nodefaults -no-user-config -display none -monitor none \
		-nic none -no-reboot "${accel[@]}" -smp 2 -m 1024 \
		-kernel "$work/vmlinuz" -initrd "$work/initrd" -drive "file=$work/root.ext4,format=raw,if=virtio" \
		-append "$words $2" -serial "file:$1" -serial stdio </dev/null 2>"$out-qemu.err"
}

# run_stage STAGE
run_stage() {
	local console=$out-$1.log ret=0
	echo "---   $1"
	machine "$console" "" | sed -u 's|\r||' | tee -a "$out.txt" || ret=$?
	grep -q "^end   stage-$1.sh" "$out.txt" || {
		echo "FAIL  the machine did not come to the end of stage $1 ($ret), see $console" |
			tee -a "$out.txt"
		tail -n 5 "$out-qemu.err" "$console" >&2
	}
}

# The last line, and the status of the whole test.
count_checks() {
	local ok failed
	ok=$(grep -c '^ok ' "$out.txt" || true)
	failed=$(grep -c '^FAIL ' "$out.txt" || true)
	echo "$name: $ok checks passed, $failed failed"
	[ "$failed" = 0 ] && [ "$ok" != 0 ]
}
