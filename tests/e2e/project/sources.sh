#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: two compilers read the whole tree once more
# Every source names the right licence in its first line and compiles without a warning under gcc
# and clang. Every header compiles alone.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)
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
	read -r line <"$f"
	# The ABI is shared with user space, so its headers have more than one licence.
	[[ $line =~ ^(//|/\*)" SPDX-License-Identifier: "(.*[^[:alnum:]_])?$want([^[:alnum:]_]|$) ]] ||
		fail "$f: first line does not say $want"
done

# The kernel's code and BPF need other flags; files of tests/data and tests/hazards are test inputs.
mapfile -t user < <(printf '%s\n' "${sources[@]}" |
	grep -vE '^(kmod/[^/]*\.c|kmod/probe/|tests/guest/cost/empty/|daemon/.*bpf/|tests/data/|tests/hazards/)|/oracle/' | grep '\.c$')
mapfile -t headers < <(printf '%s\n' "${sources[@]}" |
	grep -E '^(libprof|daemon|editor|kmod/uapi)/.*\.h$' | grep -vE '/bpf/|^editor/runtime/')
flags=(-std=gnu17 -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Werror -I.
	-D_GNU_SOURCE '-DMORPH_VERSION="test"' -I"$BUILD/runtime" -fsyntax-only)
packages=(libelf libdw sqlite3 libxxhash jansson check)
# Without PostgreSQL's library, nothing of morph-fleet is built.
if pkg-config --exists libpq libcrypto && [ -e "$BUILD/fleet/fleet_sql.h" ]; then
	packages+=(libpq libcrypto)
	flags+=(-I"$BUILD/fleet")
else
	mapfile -t user < <(printf '%s\n' "${user[@]}" | grep -vE '^(daemon/fleet/|tests/unit/daemon/fleet/|tests/tools/fleet_)')
	mapfile -t headers < <(printf '%s\n' "${headers[@]}" | grep -v daemon/fleet/)
fi
read -ra pc <<<"$(pkg-config --cflags "${packages[@]}")"
flags+=("${pc[@]}")
[ ! -e "$BUILD/runtime/runtime_blob.h" ] || flags+=(-I"$BUILD/runtime")
# Include the bpf source if this build has it.
[ ! -e "$BUILD/bpf/collector.skel.h" ] || flags+=(-DMORPH_BPF -I"$BUILD/bpf")
for cc in gcc clang; do
	command -v $cc >/dev/null || { echo "no $cc here"; continue; }
	printf '%s\0' "${user[@]}" |
		xargs -0 -P "$(nproc)" -n 8 $cc "${flags[@]}" -O2 || fail "$cc warns"
done
# One compiler is enough for headers: the sources have shown both compilers what the headers hold.
printf '%s\0' "${headers[@]}" | xargs -0 -P "$(nproc)" -I HEADER sh -c '
	printf "#include \"%s\"\n" "$1" | { shift; "$@" -x c -; }' \
	header HEADER gcc "${flags[@]}" || fail "a header does not stand alone"
if [ -e "$BUILD/bpf/collector.skel.h" ]; then
	for f in $(find daemon -name '*.bpf.c'); do
		clang -target bpf -mcpu=v2 -g -O2 -Wall -Wextra -Werror -I. -fsyntax-only \
			-idirafter "/usr/include/$(gcc -dumpmachine)" "$f" || fail "$f"
	done
fi
echo "${#sources[@]} files, $nr_failed failures"
[ $nr_failed = 0 ]
