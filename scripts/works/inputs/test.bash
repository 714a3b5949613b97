# SPDX-License-Identifier: Apache-2.0
# Test work for bash, unlike train.bash: read loops, printf, pattern
# substitution, recursion, regular expressions, sorting, here-documents.
if [ "${1:-}" = short ]; then k=1; else k=12; fi

hanoi() {
	[ "$1" -eq 0 ] && return
	hanoi $(($1 - 1)) "$2" "$4" "$3"
	MOVES=$((MOVES + 1))
	hanoi $(($1 - 1)) "$4" "$3" "$2"
}

bubble() {
	local -a v=()
	local i j t seed=17 n=$1
	for ((i = 0; i < n; i++)); do
		seed=$(((seed * 1103515245 + 12345) % 2147483648))
		v+=($((seed % 1000)))
	done
	for ((i = 0; i < n; i++)); do
		for ((j = i + 1; j < n; j++)); do
			if ((v[j] < v[i])); then
				t=${v[i]} v[i]=${v[j]} v[j]=$t
			fi
		done
	done
	echo "bubble ${v[*]:0:5}"
}

parse() {
	local line key value sum=0 out re='^([a-z]+)=([0-9]+)$' i
	for ((i = 0; i < $1; i++)); do
		while IFS=: read -r line key value; do
			if [[ $line =~ $re ]]; then
				((sum += BASH_REMATCH[2] + ${#BASH_REMATCH[1]}))
			fi
			printf -v out '%05d-%s-%x' "${#key}" "${value^^}" "$sum"
		done <<-DATA
			abc=12:one:first value
			x=999:two two:second
			Bad=1::
			long=123456:three:${line}
		DATA
	done
	echo "parse $sum $out"
}

substitute() {
	local text="the cat sat on the mat, the rat ran; " i n=0 t
	text=$text$text$text
	for ((i = 0; i < $1; i++)); do
		t=${text//the/THE}
		t=${t/cat/dog$i}
		t=${t// /_}
		n=$((n + ${#t}))
		set -- "$1" ${t//_/ }
		n=$((n + $#))
	done
	echo "substitute $n"
}

primes() {
	local n=2 count=0 d
	until [ $n -gt "$1" ]; do
		d=2
		while [ $((d * d)) -le $n ] && [ $((n % d)) -ne 0 ]; do d=$((d + 1)); done
		if [ $((d * d)) -gt $n ]; then count=$((count + 1)); fi
		n=$((n + 1))
	done
	echo "primes $count"
}

MOVES=0
hanoi $((k > 1 ? 13 : 9)) a b c
echo "hanoi $MOVES"
bubble $((k > 1 ? 330 : 95))
parse $((600 * k))
substitute $((150 * k))
primes $((k > 1 ? 5000 : 900))
