# SPDX-License-Identifier: Apache-2.0
# Other work for Ruby's library: numbers, objects, exceptions. Usage: test.rb ROUNDS
class Vec
  attr_reader :x, :y

  def initialize(x, y)
    @x = x
    @y = y
  end

  def +(other)
    Vec.new(@x + other.x, @y + other.y)
  end

  def norm
    @x * @x + @y * @y
  end
end

def collatz(n)
  steps = 0
  until n == 1
    n = n.even? ? n / 2 : 3 * n + 1
    steps += 1
  end
  steps
end

sum = Vec.new(0, 0)
failed = 0
longest = (1..ARGV[0].to_i * 40).map { |n| collatz(n) }.max
ARGV[0].to_i.times do |i|
  sum += Vec.new(i, i.to_f / 3)
  begin
    raise ArgumentError, "odd" if i.odd? && i % 5 == 0
    sum += Vec.new(Integer("12#{i}"), 1)
  rescue ArgumentError => e
    failed += e.message.size
  end
end
big = (1..60).inject(:*)
puts format("%d %d %.3f %d %s", longest, sum.x, sum.y, failed, big.to_s(36))
puts [3, 1, 2].each_slice(2).to_a.inspect, sum.norm > 0
