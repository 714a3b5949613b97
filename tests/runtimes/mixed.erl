% SPDX-License-Identifier: Apache-2.0
-module(mixed).
-export([main/0]).

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

main() ->
    io:format("~p ~p~n", [fib(22), catch throw(thrown)]),
    Parent = self(),
    spawn(fun() -> Parent ! {ok, lists:sum(lists:seq(1, 100000))} end),
    receive {ok, Sum} -> io:format("~p~n", [Sum]) end,
    halt().
