# SPDX-License-Identifier: Apache-2.0
# Test work for Ruby: objects and modules, a small parser with recursion, integers and floats. Argument: how much.
module Area
  def area = sides.inject(:*)
end

Shape = Struct.new(:sides) { include Area }

class Cube < Shape
  def area = 6 * super / (sides[0].zero? ? 1 : sides[0])
end

# Sums and products in brackets.
class Expression
  def initialize(text) = @tokens = text.scan(/\d+|[-+*()]/)

  def value
    sum = product
    sum = @tokens.shift == '+' ? sum + product : sum - product while ['+', '-'].include?(@tokens[0])
    sum
  end

  def product
    first = @tokens.shift
    result = first == '(' ? value.tap { @tokens.shift } : first.to_i
    return result unless @tokens[0] == '*'

    @tokens.shift
    (result * product) % 100_003
  end
end

rounds = (ARGV[0] || 10).to_i
total = 0
rounds.times do |round|
  shapes = (1..60).map { |i| (i.odd? ? Shape : Cube).new([i % 7, round % 5 + 1, 3]) }
  total += shapes.sum(&:area)
  text = (1..40).map { |i| i % 6 == 0 ? "(#{i} + #{round} * 2)" : i.to_s }.each_slice(2).map { |a| a.join(' * ') }.join(' + ')
  total += Expression.new(text).value
  x = 0.5
  300.times { |i| x = 3.7 * x * (1 - x) + i * 1e-9 }
  total += (x * 1000).floor + (round.lcm(36) % 11) + [round, 7, 3].permutation.count { |p| p[0] > p[1] }
  total %= 1_000_000_007
end
puts total
