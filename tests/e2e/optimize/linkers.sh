#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: programs of four linkers and three compilers
# Files of every linker: bfd, gold, lld and mold; programs with and without fixed addresses, static
# position-independent ones, and libraries; with relocations and stripped; by gcc, clang and rustc.
# Exceptions, panics and threads work as before. The kernel, ld.so as a command and qemu-user find
# the program headers, also after strip, objcopy and patchelf.
. "$(dirname "$0")/../lib.sh"
scratch linkers
need gcc g++ clang++ strip objcopy readelf jq
data=$root/tests/data
# Debian's rustc, even if $PATH finds another one first.
rustc=${RUSTC:-/usr/bin/rustc}
linkers=()
for ld in bfd gold lld mold; do
	if command -v ld.$ld >/dev/null; then linkers+=($ld); else left_out+=" $ld,"; fi
done
compilers=(gcc clang)
if [ -x "$rustc" ]; then compilers+=(rust); else left_out+=" rustc,"; fi
command -v patchelf >/dev/null || left_out+=" patchelf,"
command -v qemu-x86_64 >/dev/null || left_out+=" qemu-user,"

# rustc compiles once, so it gets a linker that links with every linker, in both kinds.
cat >every_linker <<'END'
#!/bin/bash
args=("$@")
for i in "${!args[@]}"; do [ "${args[i]}" != -o ] || at=$((i + 1)); done
out=${args[at]}
for ld in $LINKERS; do
	args[at]=$OBJECTS.$ld.stripped
	gcc "${args[@]}" -fuse-ld=$ld -s || exit 1
	args[at]=$OBJECTS.$ld.relocations
	gcc "${args[@]}" -fuse-ld=$ld -Wl,--emit-relocs || rm -f "${args[at]}"
done
cp "$OBJECTS.${LINKERS%% *}.stripped" "$out"
END
chmod +x every_linker

# can LINKER TYPE [COMPILER KIND]: gold does not support static-pie. Debian 12's gold and mold crash
# with --emit-relocs and rustc's objects.
can() {
	case "$*" in
	"gold static-pie"*) return 1 ;;
	"gold "*" rust relocations" | "mold "*" rust relocations") return 1 ;;
	esac
}

# compile COMPILER TYPE: make objects; rustc makes the linked files themselves
compile() {
	local compiler=$1 type=$2 flags list="" out=rust-$2
	if [ $compiler != rust ]; then
		case $type in
		nopie) flags=-fno-pie ;;
		shared) flags="-fPIC -DLIBRARY" ;;
		*) flags=-fPIE ;;
		esac
		[ $compiler = gcc ] && compiler=g++ || compiler=clang++
		$compiler -w -O2 -pthread $flags -c -o $1-$type.o "$data/linkers.cc"
		return
	fi
	for ld in "${linkers[@]}"; do ! can $ld $type || list+="$ld "; done
	case $type in
	pie) flags="" ;;
	nopie) flags="-C relocation-model=static" ;;
	static-pie) flags="-C target-feature=+crt-static" ;;
	shared) flags="--crate-type=cdylib --cfg library" out=liblinkers.so ;; # its soname
	esac
	LINKERS="$list" OBJECTS=$PWD/rust-$type "$rustc" -O -C linker="$PWD/every_linker" $flags \
		-o $out "$data/linkers.rs"
}

# build OUTPUT COMPILER LINKER TYPE KIND: link the objects
build() {
	local out=$1 compiler=$2 ld=$3 type=$4 kind=$5 flags
	[ $compiler != rust ] || { mv "$dir/rust-$type.$ld.$kind" "$out"; return; }
	flags=(-pthread -fuse-ld=$ld)
	case $type in
	pie) flags+=(-pie) ;;
	nopie) flags+=(-no-pie) ;;
	*) flags+=(-$type) ;;
	esac
	if [ $kind = relocations ]; then flags+=(-Wl,--emit-relocs); else flags+=(-s); fi
	[ $compiler = gcc ] && compiler=g++ || compiler=clang++
	$compiler "${flags[@]}" -o "$out" "$dir/$2-$type.o"
}

# runs FILE [HOW...]: run FILE, or ./main with FILE as its library; output in ./out
runs() {
	local file=$1 got=0
	shift
	if [ $type = shared ]; then
		mkdir -p lib
		cp "$file" lib/liblinkers.so
		LD_LIBRARY_PATH=$PWD/lib timeout 600 "$@" ./main >out 2>err </dev/null || got=$?
	else
		timeout 600 "$@" "$file" >out 2>err </dev/null || got=$?
	fi
	echo "status $got" >>out
	echo run >>nr_runs
}

same() { # WHAT [WANTED]
	cmp -s "${2:-want}" out ||
		fail "$1: $(diff "${2:-want}" out | head -n 4 | tr '\n' ' ') $(head -c 300 err)"
}

strip_all() { strip -o "$2" "$1"; }
strip_debug() { strip -g -o "$2" "$1"; }
objcopy_copy() { objcopy "$1" "$2"; }
objcopy_link() {
	objcopy --only-keep-debug "$1" side.debug && objcopy --strip-debug "$1" "$2" &&
		objcopy --add-gnu-debuglink=side.debug "$2"
}
eu_strip() { command -v eu-strip >/dev/null && eu-strip -o "$2" "$1"; }
llvm_strip() { command -v llvm-strip-14 >/dev/null && llvm-strip-14 -o "$2" "$1"; }
rpath() { cp "$1" "$2" && patchelf --set-rpath /nowhere/at/all:/nor/here "$2"; }
interpreter() { cp "$1" "$2" && patchelf --set-interpreter /lib64/ld-linux-x86-64.so.2 "$2"; }
strip_then_rpath() { strip -o "$2" "$1" && patchelf --set-rpath /nowhere "$2"; }
rpath_then_strip() { rpath "$1" "$2" && strip "$2"; }

# survives NAME FILE STEP...: FILE, an output of ./original, works after each packaging step
survives() {
	local name=$1 file=$2 step
	shift 2
	for step; do
		rm -f after
		$step "$file" after >step.log 2>&1 && chmod +x after && runs ./after && cmp -s want out && {
			readelf -lSW after >re.log 2>re.err
			[ ! -s re.err ] || fail "$name after $step: $(head -n 1 re.err)"
			readelf -SW after | grep -q '\.note\.morph' || fail "$name after $step: no map"
			continue
		}
		mv step.log step.1
		mv out out.1
		# Some tools refuse or break some originals, too.
		rm -f after
		if $step ./original after >step.log 2>&1 && chmod +x after && runs ./after &&
			cmp -s want out; then
			fail "$name after $step: $(head -n 1 step.1) $(diff want out.1 | head -n 3)"
		else
			echo "$step" >>../broken_before
		fi
	done
}

# one COMPILER LINKER TYPE KIND: in a directory of its own
one() {
	local compiler=$1 ld=$2 type=$3 kind=$4 name="$1 $2 $3 $4" options
	nr_failed=0
	mkdir "$1-$2-$3-$4" && cd "$1-$2-$3-$4" || exit 1
	can $ld $type $compiler $kind || exit 0
	build original $compiler $ld $type $kind >build.log 2>&1 || {
		fail "$name: does not build: $(head -n 3 build.log)"
		exit 1
	}
	if [ $type = shared ]; then
		mkdir lib
		cp original lib/liblinkers.so
		gcc -w -o main "$data/linkers_main.c" -Llib -llinkers || fail "$name: main"
	fi
	runs ./original
	mv out want
	[ "$(wc -l <want)" -ge 3 ] && grep -qx 'status 0' want ||
		fail "$name: the original: $(cat want err)"
	for options in --all --lab=stress-layout=5; do
		"$BUILD/morph-optimize" $options --report=json -o output original >report.json 2>err || {
			fail "$name $options: $(tail -n 1 err)"
			continue
		}
		jq -e '.functions.moved * 2 > .functions.in_file and .functions.moved >= 6' report.json \
			>/dev/null || fail "$name $options: $(jq -c .functions.moved report.json) moved"
		case "$ld $compiler $type $kind" in
		# No symbol names the routine that Rust's personality routine calls.
		*" rust static-pie stripped") ;;
		# The personality routine is a stub of mold's that no defined symbol names.
		"mold gcc nopie "* | "mold clang nopie "*) ;;
		*)
			jq -e '[.functions.left_alone[] | select(.why | test("personality|LSDA|landing"))] == []' \
				report.json >/dev/null ||
				fail "$name $options: $(jq -c '[.functions.left_alone[].why] | unique' report.json)"
			;;
		esac
		echo "$name" >>../nr_outputs
		runs ./output
		same "$name $options"
	done
	# PT_PHDR must cover the larger table. Nothing needs PT_PHDR if the original lacks it.
	if [ $compiler != rust ] && readelf -lW output | grep -q '^  PHDR'; then
		LINKERS_PHDR=1 runs ./output
		says out '^PT_PHDR 1' "$name"
	fi
	[ $type = static-pie ] || { runs ./output /lib64/ld-linux-x86-64.so.2; same "$name: ld.so"; }
	if command -v qemu-x86_64 >/dev/null && [ $kind = stripped ]; then
		runs ./original qemu-x86_64
		mv out want.qemu
		runs ./output qemu-x86_64
		same "$name: qemu-user" want.qemu
	fi
	# The packaging steps see program headers and sections, which differ little between types of files.
	if [ "${MORPH_LONG:-0}" = 0 ] && [ $type != pie ]; then
		rm -f original output lib/* main
		[ $nr_failed = 0 ]
		return
	fi
	survives "$name" ./output strip_all
	if [ $kind = stripped ]; then
		survives "$name" ./output objcopy_copy eu_strip llvm_strip
		if command -v patchelf >/dev/null; then
			survives "$name" ./output rpath rpath_then_strip
			[ $type != pie ] || survives "$name" ./output interpreter
		fi
	else
		survives "$name" ./output objcopy_link
		! command -v patchelf >/dev/null || survives "$name" ./output strip_then_rpath
	fi
	# Free the disk space.
	rm -f original output after side.debug lib/* main
	[ $nr_failed = 0 ]
}

running=0
# in_turn COMMAND...: run as many at once as there are CPUs
in_turn() {
	if [ $running -ge "$(nproc)" ]; then
		wait -n || nr_failed=$((nr_failed + 1))
		running=$((running - 1))
	fi
	(trap - EXIT; "$@") >>log 2>&1 &
	running=$((running + 1))
}
all_done() {
	for (( ; running; running--)); do wait -n || nr_failed=$((nr_failed + 1)); done
}

for compiler in "${compilers[@]}"; do
	for type in pie nopie static-pie shared; do in_turn compile $compiler $type; done
done
all_done
# Keep one file of each linker for the samples.
for ld in "${linkers[@]}"; do
	[ ! -e rust-pie.$ld.stripped ] || cp rust-pie.$ld.stripped sampled-rust-$ld
done
for ld in "${linkers[@]}"; do
	for compiler in "${compilers[@]}"; do
		for type in pie nopie static-pie shared; do
			for kind in relocations stripped; do
				in_turn one $compiler $ld $type $kind
			done
		done
	done
done
all_done
cat log
outputs=$(wc -l <nr_outputs)
# Two outputs each for 4 linkers, 3 compilers, 4 types, 2 kinds, less 13
# that the linkers cannot make.
[ -n "$left_out" ] || [ "$outputs" = 166 ] || fail "$outputs outputs, not 166"
[ ! -e broken_before ] || sort broken_before | uniq -c |
	sed 's/^/note: the original breaks, or is refused, as well: /'

# With real samples: programs of each linker and compiler whose table grew.
type=pie
if "$BUILD/morphd" run --record probe -- true >/dev/null 2>&1; then
	for ld in "${linkers[@]}"; do
		for compiler in "${compilers[@]}"; do
			name="$compiler $ld by samples"
			if [ $compiler = rust ]; then
				mv sampled-rust-$ld original
			else
				build original $compiler $ld pie stripped || fail "$name: build"
			fi
			runs ./original
			mv out want
			rm -rf db
			sampled db "$PWD/original" 100 ./original 400
			"$BUILD/morph-optimize" --min-samples=50 --db=db original -o output >out 2>err ||
				fail "$name: $(tail -n 1 err)"
			runs ./output
			same "$name"
		done
	done
else
	left_out+=" sampling,"
fi
# A hole as long as .bss takes no disk space, and the report gives its length.
echo 'char big[300000]; int f(int a) { return a * 3 + big[a]; } int main(int c, char **v) { return f(c) + !v; }' |
	gcc -O1 -fPIE -pie -xc -o holed -
command_ends 0 "a hole" "$BUILD/morph-optimize" --all --report=json holed -o holed.opt
sync holed.opt
json "a hole" '.size_hole >= 290000 and .size_hole < .size_after'
taken=$(($(stat -c '%b * %B' holed.opt)))
[ $taken -le $(($(jq '.size_after - .size_hole' out.txt) + 16384)) ] ||
	fail "a hole: $taken bytes are taken: $(jq -c '[.size_after, .size_hole]' out.txt)"
"$BUILD/morph-optimize" --all holed -o holed.opt >out.txt
says out.txt "$(stat -c %s holed.opt) bytes" "a hole"
says out.txt 'bytes of it are a hole' "a hole"

echo "$outputs outputs, $(cat ./*/nr_runs nr_runs | wc -l) runs, $nr_failed failures"
finish
