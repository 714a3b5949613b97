#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every source names the right licence in its first line and compiles without a warning under gcc
# and clang. Every header compiles alone. Length and width are only reported.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 1
nr_failed=0
fail() {
	echo "FAIL: $*"
	nr_failed=$((nr_failed + 1))
}

mapfile -t sources < <(find kmod libprof daemon editor tests -name '*.[ch]' | sort)
[ ${#sources[@]} -gt 0 ] || { echo "FAIL: no sources found"; exit 1; }
for f in "${sources[@]}"; do
	case $f in
	kmod/*|daemon/*bpf/*|tests/guest/cost/empty/*) want=GPL-2.0 ;;
	*) want=Apache-2.0 ;;
	esac
	# The ABI is shared with user space, so its headers have more than one licence.
	head -n 1 "$f" | grep -qE "^(//|/\*) SPDX-License-Identifier: .*\b$want\b" ||
		fail "$f: first line does not say $want"
	# These are habits, not limits: report, but do not fail.
	[ "$(wc -l <"$f")" -le 800 ] || echo "note: $f: longer than 800 lines"
	wide=$(expand -t 8 "$f" | awk 'length($0) > 100 { n++ } END { print n + 0 }')
	[ "$wide" = 0 ] || echo "note: $f: $wide lines are wider than 100 columns"
done

# The kernel's code and BPF need other flags; files of tests/data and tests/hazards are test inputs.
mapfile -t user < <(printf '%s\n' "${sources[@]}" |
	grep -vE '^(kmod/[^/]*\.c|kmod/probe/|tests/guest/cost/empty/|daemon/.*bpf/|tests/data/|tests/hazards/)|/oracle/' | grep '\.c$')
mapfile -t headers < <(printf '%s\n' "${sources[@]}" |
	grep -E '^(libprof|daemon|editor|kmod/uapi)/.*\.h$' | grep -vE '/bpf/|^editor/runtime/')
flags=(-std=gnu17 -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Werror -I.
	-D_GNU_SOURCE '-DMORPH_VERSION="test"' -I"$BUILD/runtime" -fsyntax-only)
read -ra pc <<<"$(pkg-config --cflags libelf libdw sqlite3 libxxhash jansson check)"
flags+=("${pc[@]}")
[ ! -e "$BUILD/runtime/runtime_blob.h" ] || flags+=(-I"$BUILD/runtime")
# Include the bpf source if this build has it.
[ ! -e "$BUILD/bpf/collector.skel.h" ] || flags+=(-DMORPH_BPF -I"$BUILD/bpf")
for cc in gcc clang; do
	command -v $cc >/dev/null || { echo "no $cc here"; continue; }
	printf '%s\0' "${user[@]}" |
		xargs -0 -P "$(nproc)" -n 8 $cc "${flags[@]}" -O2 || fail "$cc warns"
	for h in "${headers[@]}"; do
		echo "#include \"$h\"" | $cc "${flags[@]}" -x c - ||
			fail "$h does not stand alone under $cc"
	done
done
if [ -e "$BUILD/bpf/collector.skel.h" ]; then
	for f in $(find daemon -name '*.bpf.c'); do
		clang -target bpf -mcpu=v2 -g -O2 -Wall -Wextra -Werror -I. -fsyntax-only \
			-idirafter "/usr/include/$(gcc -dumpmachine)" "$f" || fail "$f"
	done
fi
echo "${#sources[@]} files, $nr_failed failures"
[ $nr_failed = 0 ]
