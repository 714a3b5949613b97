% SPDX-License-Identifier: Apache-2.0
:- initialization(main).
sum(N) :- numlist(1, N, L), sumlist(L, S), write(S), nl.
main :- sum(100000), catch(throw(thrown), X, (write(X), nl)), garbage_collect, length(L, 3), length(L, N), write(N), nl, halt.
