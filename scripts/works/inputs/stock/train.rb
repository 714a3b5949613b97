# SPDX-License-Identifier: Apache-2.0
# Training work for Ruby: words, hashes, sorting, regular expressions. Argument: how much.
rounds = (ARGV[0] || 10).to_i
state = 1
next_number = lambda { state = (state * 1_103_515_245 + 12_345) % 2_147_483_648 }
total = 0
rounds.times do |round|
  words = Array.new(400) { |i| format('word%d-%x', next_number.call % 97, i) }
  count = Hash.new(0)
  words.each { |w| count[w[/\Aword(\d+)/, 1]] += w.size }
  best = count.sort_by { |k, v| [-v, k.to_i] }.first(10).map { |k, v| "#{k}=#{v}" }.join(',')
  total = (total * 31 + best.sum + words.join(' ').gsub(/d(\d)-/) { "<#{Regexp.last_match(1)}>" }.size + round) % 1_000_003
  line = words.each_slice(7).map { |s| s.map(&:upcase).join(';') }.select { |s| s =~ /[5-9]-A/ }
  total = (total + line.size) % 1_000_003
end
puts total
