n=(ARGV[0]||300).to_i
s=Array.new(n){|i| (2..i).none?{|d| d*d<=i && i%d==0} ? i : 0}
puts s.sum
q=(0...6).to_a.permutation.count{|p| p.each_with_index.map{|x,i| x+i}.uniq.size==6 && p.each_with_index.map{|x,i| x-i}.uniq.size==6}
puts q
w="the quick brown fox jumps over the lazy dog ".*(n/30); c=Hash.new(0); w.split.each{|x| c[x]+=1}; puts c.sort_by{|k,v| [-v,k]}.first(3).inspect
