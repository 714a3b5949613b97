(* SPDX-License-Identifier: Apache-2.0 *)
(* Compiled to native code. The collector runs below functions with a switch. *)
type t = A | B | C | D | E | F of int | G of string | H of t * t | I of t list

let collect () = Gc.minor () [@@inline never]

let rec size acc = function
  | A -> 1 + List.length acc
  | B -> collect (); String.length (String.make 100 'b') + List.length acc
  | C -> List.fold_left (+) 0 (List.init 50 (fun i -> i))
  | D -> 4
  | E -> (try List.find (fun s -> s = "none") acc |> String.length with Not_found -> 5)
  | F n -> let s = string_of_int n in String.length s + size (s :: acc) A
  | G s -> let t = s ^ s ^ s in String.length t + size (t :: acc) B
  | H (a, b) -> let x = size acc a in let y = size ("k" :: acc) b in x + y
  | I l -> List.fold_left (fun n x -> n + size (String.make n 'x' :: acc) x) 0 l

let make n =
  match n mod 9 with
  | 0 -> A | 1 -> B | 2 -> C | 3 -> D | 4 -> E | 5 -> F n
  | 6 -> G (string_of_int n)
  | 7 -> H (F n, G "abc")
  | _ -> I [A; B; F n]

let () =
  let all = List.init 3000 make in
  let total = ref 0 in
  for _ = 1 to 20 do
    List.iter (fun x -> total := !total + size [] x) all;
    Gc.compact ()
  done;
  Printf.printf "%d\n" !total
