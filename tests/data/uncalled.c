// SPDX-License-Identifier: Apache-2.0
/* Only a function that never runs is counted: the import says "holds no sample" and exits with 1. */
int f(int *p) { return p[3]; }
int main(void) { return 0; }
