# SPDX-License-Identifier: Apache-2.0
"""Twelve kinds of work for each of the five test programs, of which a host of a simulated fleet does one.

None of them is the test work of scripts/works/workloads. Each takes about a second. Inputs are made here, or
come from `scripts/works/programs --inputs' ($INPUTS); both are the same on each machine.
"""

import os
import random

LUA = {
    "calls": "local function f(n) if n < 2 then return n end return f(n-1) + f(n-2) end print(f(32))",
    "strings": "local t = {} for i = 1, 400000 do t[#t+1] = ('k' .. i):upper():sub(2) if #t == 500 then t = {table.concat(t)} "
               "t = {} end end",
    "patterns": "local s = ('key=value; other = 12, x=y '):rep(60) local n = 0 for _ = 1, 900 do for k, v in "
                "s:gmatch('(%w+)%s*=%s*(%w+)') do n = n + #k + #v end s:gsub('%d+', '%%') end print(n)",
    "sort": "local t = {} for r = 1, 6 do for i = 1, 60000 do t[i] = (i * 7919 + r) % 60013 end table.sort(t, "
            "function(a, b) return a > b end) end",
    "closures": "local f = {} for i = 1, 50 do local c = 0 f[i] = function(x) c = c + x * i return c end end local s = 0 "
                "for i = 1, 6000000 do s = s + f[i % 50 + 1](i) end print(s)",
    "objects": "local A = {} A.__index = A A.__add = function(a, b) return setmetatable({v = a.v + b.v}, A) end "
               "A.__lt = function(a, b) return a.v < b.v end local x = setmetatable({v = 1}, A) local n = 0 for i = 1, 2000000 do "
               "local y = x + x if x < y then n = n + 1 end end print(n)",
    "coroutines": "local c = coroutine.wrap(function() while true do for i = 1, 9 do coroutine.yield(i) end end end) local s = 0 "
                  "for _ = 1, 2500000 do s = s + c() end print(s)",
    "floats": "local x, y, s = 0.1, 0.2, 0 for i = 1, 12000000 do x = x * 0.99 + y / 3 y = x - y * 0.5 s = s + x ^ 2 end print(s)",
    "integers": "local s = 0 for i = 1, 20000000 do s = (s ~ i) & 0xffffff s = s + (i >> 3) % 17 end print(s)",
    "tables": "for r = 1, 25 do local t = {} for i = 1, 60000 do t['k' .. i % 5000] = i t[i] = i end local n = 0 for k, v in "
              "pairs(t) do n = n + v end end",
    "compile": "local n = 0 for i = 1, 30000 do local f = load('local a, b = ' .. i .. ', {x = 1, [2] = \"s\"} if a > 5 then return "
               "a * b.x else return function() return b end end') if f() then n = n + 1 end end print(n)",
    "format": "local n = 0 for i = 1, 500000 do n = n + #string.format('%5d %s %.3f %x', i, 'abc', i / 7, i) + "
              "#tostring(i * 0.5) + tonumber('0x' .. (i % 90 + 10)) end print(n)",
}

BASH = {
    "sum": "for ((i = 0; i < 350000; i++)); do ((s += i % 7)); done; echo $s",
    "strings": "s=; for ((i = 0; i < 60000; i++)); do w=item-$i-x; w=${w#item-}; w=${w%-x}; s+=${w: -1}; [ ${#s} -lt 100 ] || s=; done",
    "case": "for ((i = 0; i < 120000; i++)); do case $i in *[02468]) ((a++)) ;; 1*) ((b++)) ;; *) ((c++)) ;; esac; done",
    "arrays": "for ((i = 0; i < 90000; i++)); do a[i % 999]=$i; t=$((t + a[i * 7 % 999])); done; echo ${#a[@]} $t",
    "maps": "declare -A m; for ((i = 0; i < 70000; i++)); do m[k$((i % 500))]=$i; x=${m[k$((i * 3 % 500))]}; done; echo ${#m[@]}",
    "functions": "f() { local a=$1 b=$2; if [ $a -gt $b ]; then r=$a; else r=$b; fi; }; for ((i = 0; i < 45000; i++)); do f $i 20000; done",
    "split": "l='one two three four five six seven eight nine ten'; for ((i = 0; i < 22000; i++)); do set -- $l; n=$((n + $#)); "
             "for w in $l; do x=$w; done; done",
    "read": "for ((i = 0; i < 25; i++)); do while IFS=, read -r a b c; do n=$((n + ${#a})); done <lines; done",
    "subshells": "for ((i = 0; i < 1500; i++)); do x=$(echo $i); y=$(printf %s $x); done",
    "test": "i=0; while [ $i -lt 130000 ]; do if [[ $i -gt 5 && $i != 77 || -z $i ]]; then i=$((i + 1)); else let i+=1; fi; done",
    "print": "for ((i = 0; i < 120000; i++)); do printf '%s %d\\n' item $i; echo -n $i; done",
    "braces": "for ((i = 0; i < 90; i++)); do for w in {a..z}{0..9}{x,y}; do v=${w^^}; v=${v/A/_}; done; done",
}

GZIP = [("text", "{} -c $INPUTS/text-train.txt"), ("text, best", "{} -9c $INPUTS/text-train.txt"),
        ("text, fast", "{} -1c $INPUTS/text-train.txt; {} -1c $INPUTS/words-train.txt"),
        ("mixed", "{} -c $INPUTS/mixed-train.bin $INPUTS/mixed-train.bin $INPUTS/mixed-train.bin"),
        ("accounts", "{} -c $INPUTS/accounts-train.txt"), ("noise", "{} -c noise; {} -9c noise"),
        ("zeros", "{} -c zeros zeros"), ("few letters", "{} -6c letters; {} -4c letters"),
        ("decompress text", "for i in 1 2 3 4 5 6 7 8; do {} -dc text.gz; done"),
        ("decompress mixed", "for i in 1 2 3 4 5 6 7 8 9 10; do {} -dc mixed.gz mixed.gz; done"),
        ("test noise", "for i in 1 2 3 4 5 6; do {} -t noise.gz; done"), ("small files", "for i in $(seq 150); do {} -c small; done")]

SORT = [("lines", "{} w"), ("second field", "{} -k2,2 -u w"), ("reverse", "{} -r -k3 -k1,1 w"), ("fold", "{} -f -b -k3 w"),
        ("numbers", "{} -n numbers"), ("general numbers", "{} -g floats"), ("sizes", "{} -h sizes"),
        ("versions", "{} -V versions"), ("months", "{} -M months"), ("unique", "{} -u numbers"),
        ("merge", "{} -m sorted sorted sorted sorted sorted sorted"),
        ("small memory", "{} -S 300k --parallel=1 w")]

SPEEDTEST1 = [("main", "{} --testset main --size 25 :memory:"), ("file", "{} --testset main --size 20 --nosync f.db"),
              ("cte", "{} --testset cte --size 70 :memory:"), ("orm", "{} --testset orm --size 60 :memory:"),
              ("fp", "{} --testset fp --size 40 :memory:"), ("rtree", "{} --testset rtree --size 20 :memory:"),
              ("primary keys", "{} --testset main --size 25 --primarykey --without-rowid :memory:"),
              ("small cache", "{} --testset main --size 20 --cachesize 20 --pagesize 1024 --nosync c.db"),
              ("utf-16", "{} --testset main --size 20 --utf16le :memory:"), ("prepare", "{} --testset orm --size 40 --reprepare :memory:"),
              ("wal", "{} --testset main --size 15 --journal wal --nosync w.db"),
              ("orm, file", "{} --testset orm --size 40 --nosync o.db")]


def works(program):
    """[(name, shell command)], with {} for the program and $INPUTS."""
    if program == "lua":
        return [(name, "{} " + f"{name}.lua") for name in LUA]
    if program == "bash":
        return [(name, "{} " + f"{name}.bash") for name in BASH]
    if program == "sort":
        return [(name, f"for n in 1 2 3 4 5 6; do {command} || exit; done") for name, command in SORT]
    return {"gzip": GZIP, "speedtest1": SPEEDTEST1}[program]


def prepare(scratch, inputs):
    """Write the files that the works read."""
    rng = random.Random(1)

    def write(name, data):
        with open(os.path.join(scratch, name), "wb" if isinstance(data, bytes) else "w", encoding=None if
                  isinstance(data, bytes) else "ascii") as out:
            out.write(data)

    for name, text in LUA.items():
        write(f"{name}.lua", text + "\n")
    for name, text in BASH.items():
        write(f"{name}.bash", text + "\n")
    write("lines", "".join(f"line{i},{i * 7},end\n" for i in range(600)))
    write("noise", rng.randbytes(6 << 20))
    write("zeros", bytes(48 << 20))
    write("letters", "".join(rng.choices("acgt\n", (9, 8, 7, 9, 1), k=3 << 20)))
    write("small", "".join(rng.choices("abcdefgh \n", k=40000)))
    with open(os.path.join(inputs, "words-train.txt"), encoding="latin-1") as f:
        lines = f.readlines()[:150000]
    write("w", "".join(lines).encode("latin-1"))
    write("sorted", "".join(sorted(lines)).encode("latin-1"))
    write("numbers", "".join(f"{rng.randrange(10 ** rng.randrange(1, 12))}\n" for _ in range(250000)))
    write("floats", "".join(f"{rng.uniform(-1e3, 1e6):g}\n" for _ in range(60000)))
    write("sizes", "".join(f"{rng.randrange(1000)}.{rng.randrange(9)}{rng.choice('KMGT')}\n" for _ in range(150000)))
    write("versions", "".join(f"lib-{rng.randrange(20)}.{rng.randrange(100)}.{rng.randrange(9)}~rc{rng.randrange(5)}.so\n"
                              for _ in range(50000)))
    write("months", "".join(f"{rng.choice('jan feb MAR apr May jun jul aug Sep oct nov dec'.split())} {rng.randrange(99)}\n"
                            for _ in range(200000)))
