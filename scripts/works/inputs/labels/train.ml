let rec fib n = if n < 2 then 1 else fib (n-1) + fib (n-2)
module M = Map.Make(String)
exception E of int
let () = Printf.printf "%d\n" (fib 25);
 let m = ref M.empty in
 for i = 0 to 2000 do m := M.add (string_of_int (i*7919 mod 1000)) i !m done;
 Printf.printf "%d %d\n" (M.cardinal !m) (M.fold (fun _ a b -> a+b) !m 0);
 let s = ref 0 in
 for i = 0 to 10000 do (try if i mod 3 = 0 then raise (E i) else s := !s + i with E k -> s := !s - k) done;
 Printf.printf "%d\n" !s; print_endline (String.concat "," (List.map string_of_int (List.sort compare (List.init 20 (fun i -> (i*37) mod 20)))));
 let a = Array.init 1000 (fun i -> float i) in Printf.printf "%g\n" (Array.fold_left (+.) 0. a)
