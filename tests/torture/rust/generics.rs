// SPDX-License-Identifier: Apache-2.0
//! Generics, closures, trait objects, matches that become jump tables, iterators, numbers of every
//! width, formatting, sorting and hashing: features for which std and the compiler make much code.
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque};
use std::fmt::{self, Display};
use std::ops::{Add, Mul};
use std::rc::Rc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Op {
    Push(i64),
    Add,
    Sub,
    Mul,
    Div,
    Dup,
    Swap,
    Over,
    Drop,
    Jump(usize),
    JumpZero(usize),
    Print,
    Halt,
}

#[derive(Debug)]
enum Fault {
    Empty(usize),
    Zero,
    Steps,
    Range(usize),
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Empty(at) => write!(f, "nothing on the stack at {:>4}", at),
            Fault::Zero => f.write_str("division by zero"),
            Fault::Steps => write!(f, "{:^12}", "too long"),
            Fault::Range(at) => write!(f, "no instruction {:#06x}", at),
        }
    }
}

fn run(code: &[Op]) -> Result<Vec<i64>, Fault> {
    let (mut stack, mut out, mut at) = (Vec::new(), Vec::new(), 0);
    for _ in 0..5000 {
        let op = *code.get(at).ok_or(Fault::Range(at))?;
        let pop = |stack: &mut Vec<i64>| stack.pop().ok_or(Fault::Empty(at));
        let mut next = at + 1;
        match op {
            Op::Push(v) => stack.push(v),
            Op::Add | Op::Sub | Op::Mul | Op::Div => {
                let (b, a) = (pop(&mut stack)?, pop(&mut stack)?);
                stack.push(match op {
                    Op::Add => a.wrapping_add(b),
                    Op::Sub => a.wrapping_sub(b),
                    Op::Mul => a.wrapping_mul(b),
                    _ => a.checked_div(b).ok_or(Fault::Zero)?,
                });
            }
            Op::Dup => {
                let a = pop(&mut stack)?;
                stack.extend([a, a]);
            }
            Op::Swap => {
                let (b, a) = (pop(&mut stack)?, pop(&mut stack)?);
                stack.extend([b, a]);
            }
            Op::Over => {
                let (b, a) = (pop(&mut stack)?, pop(&mut stack)?);
                stack.extend([a, b, a]);
            }
            Op::Drop => drop(pop(&mut stack)?),
            Op::Jump(to) => next = to,
            Op::JumpZero(to) => {
                if pop(&mut stack)? == 0 {
                    next = to;
                }
            }
            Op::Print => out.push(pop(&mut stack)?),
            Op::Halt => return Ok(out),
        }
        at = next;
    }
    Err(Fault::Steps)
}

#[derive(Clone, Debug, PartialEq)]
struct Matrix<T, const N: usize>([[T; N]; N]);

impl<T: Copy + Default + Add<Output = T> + Mul<Output = T>, const N: usize> Mul for &Matrix<T, N> {
    type Output = Matrix<T, N>;
    fn mul(self, other: Self) -> Matrix<T, N> {
        let mut r = [[T::default(); N]; N];
        for (i, row) in r.iter_mut().enumerate() {
            for (j, cell) in row.iter_mut().enumerate() {
                *cell = (0..N).fold(T::default(), |s, k| s + self.0[i][k] * other.0[k][j]);
            }
        }
        Matrix(r)
    }
}

fn power<T, const N: usize>(m: &Matrix<T, N>, n: u32) -> Matrix<T, N>
where
    T: Copy + Default + Add<Output = T> + Mul<Output = T>,
{
    (1..n).fold(m.clone(), |r, _| &r * m)
}

fn compose<A: 'static, B: 'static, C: 'static>(f: Rc<dyn Fn(A) -> B>, g: Rc<dyn Fn(B) -> C>) -> Rc<dyn Fn(A) -> C> {
    Rc::new(move |x| g(f(x)))
}

struct Random(u64);

impl Iterator for Random {
    type Item = u64;
    fn next(&mut self) -> Option<u64> {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Some(self.0)
    }
}

fn collections() {
    let numbers: Vec<u64> = Random(88172645463325252).take(3000).collect();
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    let mut stable: Vec<(u64, usize)> = numbers.iter().map(|n| n % 100).zip(0..).collect();
    stable.sort_by(|a, b| b.0.cmp(&a.0));
    let map: BTreeMap<u64, Vec<u64>> = numbers.iter().fold(BTreeMap::new(), |mut m, n| {
        m.entry(n % 31).or_insert_with(Vec::new).push(n >> 40);
        m
    });
    let set: HashSet<u64> = numbers.iter().map(|n| n % 997).collect();
    let words: HashMap<String, usize> =
        numbers.iter().map(|n| format!("{:x}", n % 4096)).fold(HashMap::new(), |mut m, w| {
            *m.entry(w).or_default() += 1;
            m
        });
    let mut heap: BinaryHeap<u64> = numbers.iter().copied().filter(|n| n & 7 == 3).collect();
    let mut queue: VecDeque<u64> = heap.iter().map(|n| n % 10).collect();
    queue.rotate_left(5);
    println!("{} {} {:?}", sorted[0], sorted[2999], &stable[..4]);
    println!("{} {} {}", map.len(), map[&7].iter().sum::<u64>(), set.len());
    println!("{} {}", words.len(), words.values().max().unwrap());
    println!("{:?} {}", heap.pop(), queue.iter().skip(3).step_by(7).sum::<u64>());
    let text: String = numbers.iter().map(|n| char::from(b'a' + (n % 26) as u8)).collect();
    let parts: Vec<&str> = text.split(|c| "aeiou".contains(c)).filter(|p| p.len() > 9).collect();
    println!("{:?} {}", parts.first(), parts.len());
}

fn numbers() {
    let big = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef_u128;
    println!("{} {:e} {:?}", big / 12345678901234567, big as f64, (big >> 3).leading_zeros());
    println!("{:?} {:?}", 200_u8.checked_add(100), i16::MAX.saturating_add(5));
    println!("{:.3} {:>9.2e} {:+}", 2.0_f64.sqrt(), 6.02214e23, -0.0_f32);
    println!("{:?}", "3.25,x,17,-1e3,nan".split(',').map(str::parse::<f64>).map(Result::ok).collect::<Vec<_>>());
    println!("{:?}", (1..=20_u64).map(|n| n.pow(3).count_ones()).collect::<Vec<_>>());
}

fn main() {
    let countdown = [
        Op::Push(7), Op::Dup, Op::Print, Op::Push(1), Op::Sub, Op::Dup, Op::JumpZero(8), Op::Jump(1), Op::Halt,
    ];
    let faults: [&[Op]; 5] = [
        &[Op::Add],
        &[Op::Push(1), Op::Push(0), Op::Div],
        &[Op::Jump(0)],
        &[Op::Push(3), Op::Push(4), Op::Over, Op::Mul, Op::Swap, Op::Drop, Op::Print],
        &[Op::Jump(77)],
    ];
    println!("{:?}", run(&countdown).unwrap());
    for f in faults {
        println!("{}", run(f).map_or_else(|e| e.to_string(), |v| format!("{:?}", v)));
    }
    println!("{:?}", power(&Matrix([[1_u64, 1], [1, 0]]), 80));
    println!("{:?}", power(&Matrix([[0.5_f64, 0.25, 0.0], [0.5, 0.5, 0.5], [0.0, 0.25, 0.5]]), 9));
    let f = compose::<i32, String, usize>(Rc::new(|x| "ab".repeat(x as usize)), Rc::new(|s| s.len()));
    let g = compose(f, Rc::new(|n: usize| n * n));
    println!("{:?}", (0..6).map(|x| g(x)).collect::<Vec<_>>());
    collections();
    numbers();
}
