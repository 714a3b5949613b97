#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-audit --library: a library at its place, with and without the right to mount, in commands and in
# servers; a command that does not use the library is an error.
. "$(dirname "$0")/../lib.sh"
cc=${CC:-gcc}
need "${cc%% *}"
scratch audit-libraries
mkdir slots place other
export TMPDIR=$dir/slots

# ends STATUS WHAT ARGS
ends() {
	command_ends "$1" "$2" "${within[@]}" "$BUILD/morph-audit" --alpha=0.2 --max-seconds=900 "${@:3}"
	[ -z "$(ls slots)" ] || fail "$2: left behind: $(ls slots)"
	[ "$(cksum <place/libwork.so.1)" = "$original" ] || fail "$2: the library changed"
}

cat >lib.c <<'END'
int work(void);
int work(void)
{
	volatile unsigned int x = 1;
	for (long i = 0; i < N; i++)
		x = x * 1664525u + 1013904223u;
	return VALUE;
}
END
cat >user.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	void *lib = dlopen(argv[1], RTLD_NOW);
	int (*work)(void) = lib ? (int (*)(void))dlsym(lib, "work") : 0;
	if (!work)
		return puts(dlerror()), 9;
	if (argc > 2) { /* a server: answers with a file */
		FILE *ready;
		work();
		ready = fopen(argv[2], "w");
		fclose(ready);
		for (;;) {
			work();
			usleep(1000);
		}
	}
	printf("%d\n", work());
	return 0;
}
END
echo 'int work(void); int main(void) { return work(); }' >linked.c
library() {
	$cc -O1 -shared -fPIC -Wl,-soname,libwork.so.1 -DN="$2" -DVALUE="$3" -o "$1" lib.c || exit 1
}
library place/libwork.so.1 20000000 0
library quick.so 100000 0
library wrong.so 100000 3
cp quick.so place/libwork.so.1.morph
cp place/libwork.so.1 other/
$cc -O1 -o linked linked.c place/libwork.so.1 && $cc -O1 -o opens user.c -ldl || exit 1
original=$(cksum <place/libwork.so.1)
export LD_LIBRARY_PATH=$dir/place

# modes WHAT: audits that must work in any way of putting the library in its place
modes() {
	ends 0 "$1: linked" --library=place/libwork.so.1 quick.so -- ./linked
	says out.txt '^faster$'
	says out.txt '^  A .* place/libwork.so.1$'
	ends 0 "$1: several programs" --library=place/libwork.so.1 quick.so -- sh -c './linked && ./linked && ./opens libwork.so.1'
	ends 6 "$1: a wrong library" --library=place/libwork.so.1 wrong.so -- ./linked
	says out.txt 'exit status 3 instead of exit status 0'
	for command in true "./opens $dir/other/libwork.so.1"; do
		# shellcheck disable=SC2086
		ends 1 "$1: nothing measured by $command" --library=place/libwork.so.1 quick.so -- $command
		one_line "$1: nothing measured by $command"
		says err.txt '^morph-audit: place/libwork.so.1: nothing was measured: the command does not use the library as '
	done
	# A server: its mappings are read.
	ends 5 "$1: a server" --library=place/libwork.so.1 --pairs=1:1 --prepare='rm -f ready' --ready='test -e ready' \
		--client='sleep 0.2' quick.so -- ./opens libwork.so.1 ready
	ends 1 "$1: a server without it" --library=place/libwork.so.1 --prepare='rm -f ready' --ready='test -e ready' \
		--client='cat place/libwork.so.1 >/dev/null' quick.so -- sh -c 'echo >ready; exec sleep 1000'
	says err.txt 'nothing was measured'
}
within=()
if unshare -m true 2>/dev/null || unshare -rm true 2>/dev/null; then
	modes mounted
	ends 0 "an absolute path" --library="$dir/place/libwork.so.1" quick.so -- ./opens "$dir/place/libwork.so.1"
	ends 0 "the output of morph-optimize" --library=place/libwork.so.1 place/libwork.so.1.morph -- ./linked
else
	echo "skip: no mount namespaces here"
	nr_skipped=$((nr_skipped + 1))
fi
# Without mount namespaces, LD_LIBRARY_PATH leads to the library. The limit holds in a user namespace only.
cat >limited <<'END'
#!/bin/sh
echo 0 >/proc/sys/user/max_mnt_namespaces && exec "$@"
END
chmod +x limited
within=(unshare -r ./limited)
if "${within[@]}" sh -c '! unshare -m true' 2>/dev/null; then
	modes "not mounted"
	ends 1 "an absolute path, not mounted" --library="$dir/place/libwork.so.1" quick.so -- ./opens "$dir/place/libwork.so.1"
	says err.txt 'nothing was measured'
	command_ends 1 "--at, not mounted" "${within[@]}" "$BUILD/morph-audit" --at=place/libwork.so.1 --command \
		place/libwork.so.1 quick.so -- ./linked
	says err.txt 'no mount namespace'
else
	echo "skip: mount namespaces cannot be forbidden here"
	nr_skipped=$((nr_skipped + 1))
fi
within=()
ends 2 "no command" --library=place/libwork.so.1 quick.so
ends 2 "three files" --library=place/libwork.so.1 quick.so wrong.so -- ./linked
ends 2 "with --at" --library=place/libwork.so.1 --at=place/libwork.so.1 quick.so -- ./linked
ends 1 "no such library" --library=place/none.so quick.so -- ./linked
says err.txt 'place/none.so'
[ "$(grep -c "$dir" /proc/self/mounts)" = 0 ] || fail "a mount is left"
[ $nr_failed = 0 ]
