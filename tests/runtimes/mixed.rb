# SPDX-License-Identifier: Apache-2.0
sums = Hash.new(0)
200000.times { |i| sums["k#{i % 1000}"] += i }
def fib(n) n < 2 ? n : fib(n - 1) + fib(n - 2) end
puts sums.size, sums["k5"], fib(22)
begin; raise "raised"; rescue => e; puts e.message; end
numbers = Enumerator.new { |y| 3.times { |i| y << i } }
p numbers.next, numbers.next, "abc".gsub(/b/) { |m| m.upcase }, catch(:a) { throw :a, 5 }
GC.start
p (1..10).each_slice(3).map(&:sum)
