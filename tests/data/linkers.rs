// SPDX-License-Identifier: Apache-2.0
//! Rust: panics that unwind through frames and threads, `catch_unwind`, generics, trait objects,
//! thread-local storage, formatting and collections of std; and where the program headers are.
//! One program, or with `--cfg library` a library: `run_all()`.
use std::any::Any;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::{Debug, Display};
use std::os::raw::{c_int, c_ulong};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Mutex};

static DROPPED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static DEPTH: Cell<u32> = Cell::new(7);
}

struct Counted(u32);

impl Drop for Counted {
    fn drop(&mut self) {
        DROPPED.fetch_add(self.0 as usize, Ordering::Relaxed);
    }
}

trait Shape {
    fn area(&self) -> u64;
    fn name(&self) -> String {
        String::from("shape")
    }
}

struct Square(u64);
struct Circle(u64);

impl Shape for Square {
    fn area(&self) -> u64 {
        self.0 * self.0
    }
}

impl Shape for Circle {
    fn area(&self) -> u64 {
        if self.0 > 12 {
            panic!("circle of {} is too large", self.0);
        }
        3 * self.0 * self.0
    }
    fn name(&self) -> String {
        format!("circle{}", self.0)
    }
}

#[inline(never)]
fn deep<T: Display + Clone + Debug>(value: T, depth: u32) -> usize {
    let _guard = Counted(depth + 1);
    DEPTH.with(|d| d.set(d.get() + 1));
    if depth == 0 {
        match value.to_string().len() % 4 {
            0 => panic!("plain"),
            1 => panic::panic_any(value.to_string()),
            2 => panic::resume_unwind(Box::new(41_i32)),
            _ => return value.to_string().len(),
        }
    }
    deep(value.clone(), depth - 1) + format!("{:?}", value).len()
}

fn describe(payload: Box<dyn Any + Send>) -> String {
    if let Some(s) = payload.downcast_ref::<&str>() {
        format!("str {}", s)
    } else if let Some(s) = payload.downcast_ref::<String>() {
        format!("string {}", s)
    } else if let Some(n) = payload.downcast_ref::<i32>() {
        format!("number {}", n)
    } else {
        String::from("something else")
    }
}

fn catches(n: u32, words: &mut BTreeMap<String, usize>) -> usize {
    let mut sum = 0;
    for i in 0..n {
        let caught = panic::catch_unwind(AssertUnwindSafe(|| match i % 3 {
            0 => deep(i * i * 37, 3),
            1 => deep("x".repeat(i as usize % 6), 2),
            _ => deep(i as f64 / 8.0, 4),
        }));
        match caught {
            Ok(len) => sum += len,
            Err(payload) => *words.entry(describe(payload)).or_insert(0) += 1,
        }
    }
    sum
}

fn threads() -> usize {
    let total = Arc::new(Mutex::new(HashMap::new()));
    let (tx, rx) = mpsc::channel();
    let all: Vec<_> = (0..4)
        .map(|i| {
            let (total, tx) = (Arc::clone(&total), tx.clone());
            std::thread::spawn(move || {
                let mut words = BTreeMap::new();
                let sum = catches(9 + i, &mut words);
                total.lock().unwrap().insert(i, words.values().sum::<usize>());
                tx.send(sum + DEPTH.with(|d| d.get()) as usize).unwrap();
                if i == 2 {
                    panic!("thread {}", i);
                }
            })
        })
        .collect();
    let failed = all.into_iter().map(|t| t.join()).filter(|r| r.is_err()).count();
    drop(tx);
    let caught = total.lock().unwrap().values().sum::<usize>();
    rx.iter().sum::<usize>() + failed * 1000 + caught
}

fn shapes(n: u64) -> String {
    let all: Vec<Box<dyn Shape>> = (0..n)
        .map(|i| -> Box<dyn Shape> { if i % 3 == 0 { Box::new(Circle(i)) } else { Box::new(Square(i)) } })
        .collect();
    let mut parts: Vec<String> = Vec::new();
    for s in &all {
        let area = panic::catch_unwind(AssertUnwindSafe(|| s.area())).unwrap_or(1);
        parts.push(format!("{}={}", s.name(), area));
    }
    parts.sort_by_key(|p| (p.len(), p.clone()));
    parts.join(" ")
}

/// Where a run spends its time, so that samples find something.
#[inline(never)]
fn work(n: u64) -> u64 {
    (0..n).fold(1, |sum: u64, i| match (sum ^ i) % 7 {
        0 => sum / 3,
        1 | 4 => sum.wrapping_mul(31),
        2 => sum.rotate_left(5),
        _ => sum.wrapping_add(i),
    })
}

#[repr(C)]
struct Phdr {
    kind: u32,
    flags: u32,
    off: u64,
    vaddr: u64,
    paddr: u64,
    filesz: u64,
    memsz: u64,
    align: u64,
}

extern "C" {
    fn getauxval(kind: c_ulong) -> c_ulong;
}

/// The program's own table, as the kernel or the dynamic linker says where it is.
fn headers() -> String {
    let (at, nr) = unsafe { (getauxval(3) as *const Phdr, getauxval(5) as usize) };
    let table = unsafe { std::slice::from_raw_parts(at, nr) };
    let count = |kind| table.iter().filter(|p| p.kind == kind).count();
    let first = table.iter().any(|p| p.kind == 1 && p.off == 0);
    let own = table.iter().all(|p| p.kind != 6 || p.memsz == (nr * 56) as u64);
    format!("first {}, tls {}, unwind {}, own {}", first, count(7), count(0x6474e550), own)
}

#[no_mangle]
pub extern "C" fn run_all(rounds: c_int) -> c_int {
    panic::set_hook(Box::new(|_| ()));
    let mut words = BTreeMap::new();
    let mut sum = 0;
    for _ in 0..rounds {
        sum += catches(30, &mut words) + threads();
    }
    println!("sum {}, dropped {}", sum, DROPPED.load(Ordering::Relaxed));
    println!("{:?}", words);
    println!("{} {}", work(100_000 * rounds as u64), shapes(20));
    println!("{}", headers());
    0
}

#[cfg(not(library))]
fn main() {
    let rounds = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(2);
    std::process::exit(run_all(rounds));
}
