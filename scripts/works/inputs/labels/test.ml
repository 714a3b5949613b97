type t = Leaf | Node of t * int * t
let rec insert x = function Leaf -> Node (Leaf, x, Leaf) | Node (l, v, r) as n -> if x < v then Node (insert x l, v, r) else if x > v then Node (l, v, insert x r) else n
let rec sum = function Leaf -> 0 | Node (l, v, r) -> sum l + v + sum r
let () = let t = ref Leaf in for i = 0 to 3000 do t := insert (i * 7919 mod 4001) !t done; print_int (sum !t); print_newline ();
 let h = Hashtbl.create 16 in String.iter (fun c -> Hashtbl.replace h c (1 + try Hashtbl.find h c with Not_found -> 0)) (String.concat "" (List.init 2000 string_of_int)); Hashtbl.iter (fun k v -> Printf.printf "%c%d " k v) h; print_newline ();
 let b = Buffer.create 16 in for i = 1 to 3000 do Buffer.add_string b (Printf.sprintf "%x" (i*i)) done; print_endline (Digest.to_hex (Digest.string (Buffer.contents b)))
