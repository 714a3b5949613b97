// SPDX-License-Identifier: Apache-2.0
// A resolver that only the loader knows, once the symbols are gone.
static int one(int n) { return n + 1; }
static int two(int n) { return n + 2; }
static int (*resolve(void))(int) { return sizeof(long) == 8 ? one : two; }
static int chosen(int n) __attribute__((ifunc("resolve")));
int main(int argc, char **argv) { return chosen(argc) - 2 + (argv[0] == 0); }
