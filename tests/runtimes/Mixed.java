// SPDX-License-Identifier: Apache-2.0
import java.util.*;

public class Mixed {
    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    static int deep(int n) { return deep(n + 1) + 1; }

    public static void main(String[] args) throws Exception {
        Map<String, Integer> sums = new HashMap<>();
        for (int i = 0; i < 500000; i++)
            sums.merge("k" + i % 1000, i, Integer::sum);
        System.out.println(sums.size() + " " + sums.get("k5") + " " + fib(27));
        try { Object none = null; none.toString(); } catch (NullPointerException e) { System.out.println("null"); }
        try { deep(0); } catch (StackOverflowError e) { System.out.println("deep"); }
        List<byte[]> kept = new ArrayList<>();
        for (int i = 0; i < 2000; i++) {
            kept.add(new byte[100000]);
            if (kept.size() > 100)
                kept.remove(0);
        }
        System.gc();
        Thread thread = new Thread(() -> System.out.println(kept.size()));
        thread.start();
        thread.join();
    }
}
