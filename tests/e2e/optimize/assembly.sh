#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Libraries with much hand-written assembly, as the distribution ships them: OpenSSL's, GMP's,
# glibc's. Moved, and with counters or path numbers, they compute the same. The libraries are also
# told to use the code for other processors.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
need openssl gcc jq
scratch assembly
export LC_ALL=C
libs=/usr/lib/x86_64-linux-gnu
head -c 70001 "$root/Documentation/lab/results.md" >data
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out rsa.pem 2>/dev/null
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out ec.pem 2>/dev/null
openssl pkey -in ec.pem -pubout -out ec.pub
openssl dgst -sha256 -sign ec.pem -out ec.sig data
openssl genpkey -algorithm X25519 -out x.pem && openssl pkey -in x.pem -pubout -out x.pub

cat >sums.c <<'C'
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static unsigned char a[9000], b[9000];

static void strings(void)
{
	unsigned long h = 0;

	for (size_t i = 0; i < sizeof(a) - 1; i++)
		a[i] = (unsigned char)(i * 7 % 251 + 1);
	for (size_t n = 0; n < 4200; n = n < 300 ? n + 1 : n * 2 + n / 7)
		for (size_t at = 0; at < 67; at += n < 70 ? 1 : 13) {
			unsigned char kept = a[at + n];

			a[at + n] = 0;
			h = h * 31 + strlen((char *)a + at) + strnlen((char *)a + at, n / 2);
			strcpy((char *)b + at / 2, (char *)a + at);
			h += (unsigned long)(strchrnul((char *)b + at / 2, (int)(n % 250) + 1) - (char *)b);
			h += (strcmp((char *)b + at / 2, (char *)a + at + n % 3) > 0) * 5;
			h += (memrchr(a, 9, at + n) != NULL) + (strstr((char *)a, "\x09\x10\x17") != NULL) * 3;
			a[at + n] = kept;
			memmove(b + at, b + at / 3, n);
			memset(b + n, (int)at, at);
			memcpy(b + 100, a + at, n);
			h += (memcmp(a + at, b + 100, n) == 0) * 7 + (memchr(b, 200, n) ? 11 : 0);
			for (size_t i = 0; i < sizeof(b); i += 61)
				h = h * 33 + b[i];
		}
	printf("strings %lx %zu\n", h, wcslen(L"wide characters"));
}

static void numbers(void)
{
	for (double x = -20.3; x < 720; x += 1.913)
		printf("%a %a %a %a %a %a %a %a\n", sin(x), cos(x * 3), tan(x), exp(x), log(fabs(x)),
		       pow(fabs(x), 1.7), atan2(x, 3), fma(x, x, -1.5));
	for (float x = -3.5f; x < 80; x += 1.37f)
		printf("%a %a %a %a %La\n", sinf(x), expf(x), logf(fabsf(x)), cosf(x), sqrtl(fabsf(x)));
}

int main(void)
{
	strings();
	numbers();
	return 0;
}
C
gcc -O1 -fno-builtin -D_GNU_SOURCE -o sums sums.c -lm || fail "sums.c"
gmp=
if echo '#include <gmp.h>' | gcc -E - >gmp.i 2>/dev/null; then
	cat >big.c <<'C'
#include <gmp.h>
#include <stdio.h>

int main(void)
{
	mpz_t a, b, c, d;

	mpz_inits(a, b, c, d, NULL);
	mpz_set_ui(c, 1);
	for (unsigned int n = 3; n < 40000; n = n * 2 + 5) {
		mpz_fac_ui(a, n);
		mpz_ui_pow_ui(b, 7, n * 2 + 1);
		mpz_mul(d, a, b);
		mpz_add(c, c, d);
		mpz_tdiv_qr(a, b, d, c);
		mpz_gcd(d, b, c);
		mpz_sqrt(a, c);
		if (n < 500)
			mpz_powm(b, a, d, c);
		mpz_tdiv_r_2exp(c, c, 300000);
		mpz_setbit(c, 3000);
		gmp_printf("%u %Zx %Zx\n", n, a, b);
	}
	mpz_mul(a, c, c);
	mpz_out_str(stdout, 10, a);
	return mpz_probab_prime_p(c, 5);
}
C
	gcc -O1 -o big big.c -lgmp && gmp=libgmp.so.10
else
	left_out="$left_out gmp.h"
fi

mapfile -t digests < <(openssl list -digest-commands | tr -s ' ' '\n')
ciphers=(aes-128-cbc aes-256-cbc aes-192-ecb aes-128-ctr aes-256-ofb aria-128-cbc bf-cbc camellia-256-cbc cast5-cbc
	chacha20 des-ede3-cbc rc2-cbc rc4 seed-cbc sm4-cbc sm4-ctr)

crypto() { # with libcrypto from the directory that LD_LIBRARY_PATH names
	local name
	for name in "${digests[@]}"; do
		openssl dgst "-$name" data
	done
	for name in "${ciphers[@]}"; do
		openssl enc "-$name" -provider default -provider legacy -K 00112233445566778899aabbccddeeff \
			-iv 0f1e2d3c4b5a69788796a5b4c3d2e1f0 -in data | cksum
	done
	openssl dgst -sha512 -sign rsa.pem data | cksum
	openssl dgst -sha256 -verify ec.pub -signature ec.sig data
	openssl pkeyutl -derive -inkey x.pem -peerkey x.pub | cksum
	openssl prime 170141183460469231731687303715884105727
}

# work LIBS: all computations, with the libraries of that directory
work() {
	local cap
	for cap in "" ~0x200000000000000:~0x200000 0:0; do
		echo "capabilities $cap"
		(export LD_LIBRARY_PATH=$1 OPENSSL_ia32cap=$cap; [ -n "$cap" ] || unset OPENSSL_ia32cap; crypto) 2>&1
	done
	for cap in "" -AVX2,-AVX_Fast_Unaligned_Load,-ERMS,-AVX512F,-AVX512VL \
		-SSE4_1,-SSSE3,-AVX,-AVX2,-FMA,-FMA4; do
		GLIBC_TUNABLES=glibc.cpu.hwcaps=$cap LD_LIBRARY_PATH=$1 ./sums || echo "sums: $?"
	done
	[ -z "$gmp" ] || { LD_LIBRARY_PATH=$1 ./big; echo "big: $?"; }
}

mkdir none
work "$dir/none" >want.txt
[ "$(grep -c '= [0-9a-f]*$' want.txt)" -gt 30 ] || fail "only: $(head -n 5 want.txt)"
grep -q '^4294967295 0$' want.txt && fail "nothing was enciphered: $(grep -i error want.txt | head -n 3)"
says want.txt "Verified OK"
for how in "" "instrument --kind=edges" "instrument --kind=pep"; do
	rm -rf moved && mkdir moved
	for lib in libcrypto.so.3 libc.so.6 libm.so.6 $gmp; do
		[ -e "$libs/$lib" ] || { left_out="$left_out $lib"; continue; }
		# A different seed for each, but the same in each run.
		seed=$(($(cksum <<<"$lib $how" | cut -d' ' -f1) % 99))
		# shellcheck disable=SC2086 # none or two words
		command_ends 0 "$lib $how" "$BUILD/morph-optimize" $how --lab=stress-layout=$seed --report=json \
			"$libs/$lib" -o "moved/$lib"
		echo "$lib $how, seed $seed: $(jq -c '[.functions.moved, .functions.in_file]' out.txt) functions"
	done
	work "$dir/moved" >got.txt
	cmp -s want.txt got.txt || fail "${how:-moved}: $(diff want.txt got.txt | head -n 6 | cut -c1-300)"
done
finish
