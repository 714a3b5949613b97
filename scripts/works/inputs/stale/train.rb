# SPDX-License-Identifier: Apache-2.0
# Training of Ruby's library: strings, hashes, sorting. Usage: train.rb ROUNDS
x = 4711
words = Array.new(3000) { x = (x * 69069 + 12345) % 2**31; "word#{x % 977}" }
ARGV[0].to_i.times do |round|
  count = Hash.new(0)
  words.each { |w| count[w] += w.length }
  sorted = count.sort_by { |k, v| [-v, k] }
  text = sorted.map { |k, v| "#{k}=#{v}" }.join(",")
  text = text.gsub(/word(\d)/) { "w#{$1}" }.upcase
  n = text.split(",").select { |s| s.include?("7") }.length
  puts "#{round} #{n} #{text.hash == 0} #{text.length}" if round % 50 == 0
end
