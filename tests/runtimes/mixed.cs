// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Linq;

class Mixed {
    static int Fib(int n) { return n < 2 ? n : Fib(n - 1) + Fib(n - 2); }

    static void Main() {
        var last = new Dictionary<string, int>();
        for (int i = 0; i < 100000; i++)
            last["k" + i % 1000] = i;
        try { throw new Exception("thrown"); } catch (Exception e) { Console.WriteLine(e.Message); }
        GC.Collect();
        Console.WriteLine("{0} {1} {2}", last.Count, Fib(22), Enumerable.Range(0, 100).Where(x => x % 3 == 0).Sum());
    }
}
