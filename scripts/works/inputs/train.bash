# SPDX-License-Identifier: Apache-2.0
# Training work for bash: counting loops, arrays, string operations, case,
# functions. Everything is built in, nothing is forked.
scale=${1:-1}

count_loop() {
	local i sum=0
	for ((i = 0; i < $1; i++)); do
		((sum += i % 7 * 3))
		if ((i % 3 == 0)); then ((sum -= 2)); fi
	done
	echo "loop $sum"
}

arrays() {
	local -a a=()
	local -A seen=()
	local i
	for ((i = 0; i < $1; i++)); do
		a[i]=$((i * i % 1009))
		seen[k$((i % 97))]=$i
	done
	local sum=0 v
	for v in "${a[@]}"; do ((sum += v)); done
	echo "arrays $sum ${#seen[@]}"
}

strings() {
	local s= i n=0 word
	for ((i = 0; i < $1; i++)); do
		word="prefix-$i-suffix"
		word=${word#prefix-}
		word=${word%-suffix}
		s+=${word: -1}
		n=$((n + ${#word}))
		[ ${#s} -lt 200 ] || s=${s:100}
		[[ $word == *7* ]] && n=$((n + 1))
	done
	echo "strings $n ${#s}"
}

classify() {
	local i w a=0 b=0 c=0
	for ((i = 0; i < $1; i++)); do
		w=${WORDS[i % ${#WORDS[@]}]}
		case $w in
		a*|e*) ((a++)) ;;
		*[0-9]*) ((b++)) ;;
		*) ((c++)) ;;
		esac
	done
	echo "classify $a $b $c"
}

WORDS=(alpha beta gamma delta1 epsilon zeta2 eta theta iota kappa)

gcd() {
	local a=$1 b=$2 t
	while [ "$b" -ne 0 ]; do
		t=$((a % b)); a=$b; b=$t
	done
	G=$a
}

many_gcd() {
	local i sum=0
	for ((i = 1; i <= $1; i++)); do
		gcd $((i * 91)) $((i * 35 + 7))
		sum=$((sum + G))
	done
	echo "gcd $sum"
}

count_loop $((1100000 * scale))
arrays $((210000 * scale))
strings $((210000 * scale))
classify $((350000 * scale))
many_gcd $((35000 * scale))
