def fib(n) n<2 ? 1 : fib(n-1)+fib(n-2) end
n=(ARGV[0]||22).to_i
puts fib(n)
h={}; (n*400).times{|i| h["k#{i%97}"]=(h["k#{i%97}"]||0)+i}; puts h.values.sum
puts (1..n*100).map{|x| x*x}.select(&:even?).each_slice(3).map(&:first).sum
