#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: the completion of each option of each program
# The completion that `make install' gives to bash offers each option and command of --help. The
# program accepts everything that is offered. Pressing the key works.
. "$(dirname "$0")/../lib.sh"
dir=$(mktemp -d "${TMPDIR:-/tmp}/completion.XXXXXX") || exit 1
at_exit 'rm -rf "$dir"'
nr_failed=0 nr=0
make -C "$root" --no-print-directory O="$BUILD" DESTDIR="$dir/dest" PREFIX=/usr install >/dev/null ||
	{ echo "FAIL: make install"; exit 1; }
installed=$dir/dest/usr/share/bash-completion/completions
export PATH=$BUILD:$PATH
mkdir "$dir/files" "$dir/files/sub dir" && cd "$dir/files" && touch one.db two.db "three four.db" || exit 1

# offered WORD...: print the completions at the end of this line, one per line. As in bash, "--a=b"
# is three words unless $joined is set.
joined=''
offered() {
	bash --norc --noprofile -c '
		. "$1/$3"
		joined=$2
		shift 2
		words=()
		for word; do
			case $joined,$word in
			,--*=) words+=("${word%=}" =) ;;
			,--*=*) words+=("${word%%=*}" = "${word#*=}") ;;
			*) words+=("$word") ;;
			esac
		done
		COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1))
		COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
		"_${1//-/_}" "$1" "${words[COMP_CWORD]}" "" 2>/dev/null
		[ ${#COMPREPLY[@]} = 0 ] || printf "%s\n" "${COMPREPLY[@]}"
	' bash "$installed" "$joined" "$@"
}

# offers WANTED WORD...: exactly these completions are offered, in any order
offers() {
	local want got
	nr=$((nr + 1))
	want=$(tr ' ' '\n' <<<"$1" | sort)
	shift
	got=$(offered "$@" | sort)
	[ "$got" = "$want" ] || fail "$*: offered $(tr '\n' ' ' <<<"$got"), not $(tr '\n' ' ' <<<"$want")"
}

# ---- both directions, for each program and command
for program in morph morphd morph-stats morph-optimize morph-audit; do
	[ -s "$installed/$program" ] || { fail "$program: no completion is installed"; continue; }
	bash -n "$installed/$program" || fail "$program: bash does not read it"
	for command in '' $(offered "$program" '' | grep -v '\.db$\|dir$'); do
		# shellcheck disable=SC2086
		ARGP_HELP_FMT=rmargin=9999 "$program" $command --help >"$dir/help.txt" 2>&1 || fail "$program $command is offered: unknown"
		# argp may put more spaces between the two names of an option where lines are this long.
		listed=$(grep -oE '^ +(-., +)?--[a-z-]+' "$dir/help.txt" | grep -oE -e '--[a-z-]+')
		# shellcheck disable=SC2086
		got=$(offered "$program" $command -- | tr -d =)
		[ "$(sort <<<"$got")" = "$(sort <<<"$listed")" ] ||
			fail "$program $command: options offered and listed differ: $(
				diff <(sort <<<"$got") <(sort <<<"$listed"))"
		nr=$((nr + 1))
		# shellcheck disable=SC2086
		for option in $(offered "$program" $command -- | grep =); do
			for value in $(offered "$program" $command "$option" | grep -v '\.db$\|dir$' | head -n 20); do
				nr=$((nr + 1))
				"$program" $command "$option$value" --help >/dev/null 2>&1 ||
					fail "$program $command $option$value is offered, but not taken"
			done
		done
	done
done
commands=$(morph-stats --help | sed -n '/^Commands:/,/^[^ ]/s/^  \([a-z]*\) .*/\1/p' | tr '\n' ' ')
[ "$(wc -w <<<"$commands")" -ge 10 ] || fail "morph-stats --help lists too few commands: $commands"
offers "${commands% }" morph-stats ''
offers "run" morphd ''

# ---- values
offers "top list explain history optimize adopt undo watch on off live report" morph ''
offers "one.db" morph list -d o
offers "callgrind counters fdata perf ways" morph-stats import --format=
offers "callgrind" morph-stats import --format=ca
offers "callgrind" morph-stats import --format ca
offers "folded callgrind pprof json fdata llvm-sample gcc-afdo propeller order speedscope" morph-stats export --format=
offers "module function block path copy context" morph-stats -d one.db query --by=
offers "module function block path copy context" morph-stats --db=one.db query --by ''
offers "blocks=ph blocks=original" morph-optimize --layout=b
offers "train refine instrument verify adopt restore" morph-optimize ''
offers "train" morph-optimize tr
offers "cfg counts plan place" morph-optimize --print=
offers "text dot" morph-optimize --print-format=
offers "audit calls edges meter pep" morph-optimize instrument --kind=
offers "plain threads atomic" morph-optimize train --counters=
offers "one.db" morph-optimize restore o
offers "one.db" morph-optimize verify one.db o
offers "" morph-optimize restore --in
offers "text json none" morph-optimize --report ''
offers "kmod bpf perf replay auto" morphd --source=
offers "kmod bpf perf auto" morphd run -s ''
offers "cpu user wall" morph-audit --metric=
joined=yes
offers "--format=callgrind" morph-stats import --format=ca
offers "--db=one.db" morph-stats --db=o
joined=''

# ---- files are offered only where a file is wanted
offers "one.db" morph-stats --db=o
offers "one.db" morph-stats query -d o
offers "one.db" morph-stats merge two.db o
offers "one.db" morph-optimize o
offers "one.db" morph-audit o
offers "one.db" morph-audit one.db two.db -- o
offers "one.db" morphd run -- cat o
offers "one.db" morphd run cat o
offers "" morphd run cat -- --d
offers "" morph-stats query o
offers "" morph-stats query --limit=
offers "" morph-stats query --build-id ''
offers "" morph-stats frobnicate --form
[ "$(offered morph-optimize three)" = "three four.db" ] || fail "a file with a space"
[ "$(offered morph-optimize --backup-dir=)" = "sub dir" ] || fail "directories alone for --backup-dir"
offered morphd run -- morph-st | grep -qx morph-stats || fail "morphd run -- offers no programs"
offered morph-stats heat --output=o | grep -qx one.db || fail "heat --output offers no files"

# ---- a program's new command appears in the completion without further work
cat >"$dir/morph-stats" <<S
#!/bin/bash
case "\$*" in
*--pace=fast*--help | *--pace=slow*--help) exit 0 ;;
*--pace=*--help) exit 2 ;;
"dance --help") printf 'Usage: morph-stats dance [OPTION...] FILE\nDance.\n\n      --pace=HOW   fast or slow\n' ;;
--help) printf 'Usage: morph-stats [OPTION...] COMMAND\nAsk.\n\n  -d, --db=FILE  it\n\nCommands:\n  dance  it\n' ;;
*--help) exit 0 ;;
esac
S
chmod +x "$dir/morph-stats"
if "$root/scripts/package/completion" "$dir/morph-stats" >"$dir/followed"; then
	installed=$dir/learnt
	mkdir "$installed" && mv "$dir/followed" "$installed/morph-stats"
	offers "dance" morph-stats ''
	offers "fast slow" morph-stats dance --pace=
	offers "--pace=" morph-stats dance --p
	installed=$dir/dest/usr/share/bash-completion/completions
else
	fail "scripts/package/completion does not follow a changed program"
fi
printf '#!/bin/sh\necho "Usage: x"\n' >"$dir/mute" && chmod +x "$dir/mute"
! "$root/scripts/package/completion" "$dir/mute" >/dev/null 2>&1 || fail "a program without options passes"

# ---- the key itself, in a separate shell without the bash-completion package
cat >"$dir/press.py" <<'P'
import os, pty, select, sys, time
completion, typed, wanted = sys.argv[1], sys.argv[2].encode(), sys.argv[3].encode()
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(PS1="READY> ", TERM="dumb", INPUTRC="/dev/null", HISTFILE="/dev/null")
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
seen = b""
def until(text, since, seconds=300):
    global seen
    end = time.time() + seconds
    while text not in seen[since:]:
        if time.time() > end or not select.select([fd], [], [], end - time.time())[0]:
            return False
        try:
            seen += os.read(fd, 4096)
        except OSError:
            return False
    return True
until(b"READY> ", 0)
mark = len(seen)
os.write(fd, b". '" + completion.encode() + b"'; PS1='NOW''> '\n")
until(b"NOW> ", mark)
mark = len(seen)
os.write(fd, typed + b"\t")
ok = until(wanted, mark)
os.write(fd, b"\x15exit\n")
try:
    while os.read(fd, 4096):
        pass
except OSError:
    pass
os.waitpid(pid, 0)
if not ok:
    print(f"typed {typed!r}: {seen[mark:]!r}, not {wanted!r}")
sys.exit(not ok)
P
# pressed PROGRAM TYPED WANTED
pressed() {
	nr=$((nr + 1))
	python3 "$dir/press.py" "$installed/$1" "$2" "$3" || fail "the key after '$2'"
}
if command -v python3 >/dev/null; then
	pressed morph-stats "morph-stats anno" "morph-stats annotate "
	pressed morph-stats "morph-stats export --form" "morph-stats export --format="
	pressed morph-stats "morph-stats export --format=llvm" "--format=llvm-sample "
	pressed morph-stats "morph-stats --db=one" "--db=one.db "
	pressed morph-optimize "morph-optimize --report=js" "--report=json "
	pressed morph-optimize "morph-optimize thr" 'three\ four.db '
	pressed morphd "morphd run --sou" "--source="
	pressed morph-audit "morph-audit --metric us" "--metric user "
else
	echo "python3 is missing: the key was not pressed"
fi
echo "$nr lines, $nr_failed failures"
[ $nr_failed = 0 ]
