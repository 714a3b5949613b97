// SPDX-License-Identifier: Apache-2.0
//! Panics: the order in which values are dropped, panics caught in loops and rethrown, nested
//! catches, poisoned locks, scoped threads that fail, panics in iterators and in `Drop`.
use std::cell::RefCell;
use std::panic::{self, catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::{Mutex, RwLock};

thread_local!(static LOG: RefCell<Vec<String>> = RefCell::new(Vec::new()));

fn log(s: String) {
    LOG.with(|l| l.borrow_mut().push(s));
}

struct Noisy(&'static str, u32);

impl Drop for Noisy {
    fn drop(&mut self) {
        log(format!("drop {}{}{}", self.0, self.1, if std::thread::panicking() { "!" } else { "" }));
    }
}

#[inline(never)]
fn dive(depth: u32, fail_at: u32) -> Result<u32, String> {
    let _a = Noisy("a", depth);
    if depth == fail_at {
        let _b = Noisy("b", depth);
        match depth % 3 {
            0 => panic!("depth {}", depth),
            1 => return Err(format!("error at {}", depth)),
            _ => Option::<u32>::None.expect("nothing"),
        };
    }
    if depth == 9 {
        return Ok(depth);
    }
    let v: Vec<Noisy> = (0..depth % 3).map(|i| Noisy("v", i)).collect();
    let got = dive(depth + 1, fail_at)?;
    Ok(got + v.len() as u32)
}

#[inline(never)]
fn again(n: u32) -> String {
    let outer = catch_unwind(|| {
        let inner = catch_unwind(|| {
            let _n = Noisy("inner", n);
            if n % 2 == 0 {
                panic!("even {}", n);
            }
            n * 2
        });
        match inner {
            Ok(v) => v,
            Err(e) if n % 4 == 0 => resume_unwind(e),
            Err(_) => 0,
        }
    });
    match outer {
        Ok(v) => format!("ok {}", v),
        Err(e) => e.downcast_ref::<String>().cloned().unwrap_or_default(),
    }
}

fn checked(values: &[i32]) -> Vec<String> {
    values
        .iter()
        .map(|&v| {
            let r = catch_unwind(AssertUnwindSafe(|| {
                let a = [1, 2, 3, 5, 8];
                let i = a[v as usize % 7];
                100 / (i - 3) + i32::from_str_radix("7f", 16).unwrap()
            }));
            r.map_or_else(|_| "panic".into(), |x| x.to_string())
        })
        .collect()
}

fn locks() -> (bool, bool, u32) {
    let m = Mutex::new(1_u32);
    let rw = RwLock::new(vec![1, 2, 3]);
    std::thread::scope(|s| {
        let t = s.spawn(|| {
            let mut g = m.lock().unwrap();
            *g += 41;
            panic!("with the lock");
        });
        assert!(t.join().is_err());
        let t = s.spawn(|| rw.write().unwrap()[7] = 1);
        assert!(t.join().is_err());
    });
    let value = m.lock().unwrap_or_else(|p| p.into_inner());
    (m.is_poisoned(), rw.is_poisoned(), *value)
}

struct Falls(u32);

impl Drop for Falls {
    fn drop(&mut self) {
        if self.0 == 3 && !std::thread::panicking() {
            panic!("in drop");
        }
        log(format!("falls {}", self.0));
    }
}

fn main() {
    panic::set_hook(Box::new(|info| log(format!("hook line {}", info.location().map_or(0, |l| l.line())))));
    for fail_at in 0..12 {
        let r = catch_unwind(|| dive(0, fail_at));
        println!("{}: {:?}", fail_at, r.map_err(|_| "panic"));
    }
    for n in 0..9 {
        println!("{}", again(n));
    }
    println!("{:?}", checked(&[0, 1, 2, 3, 4, 5, 6, 7, -1]));
    println!("{:?}", locks());
    let r = catch_unwind(|| {
        let _all: Vec<Falls> = (0..6).map(Falls).collect();
    });
    println!("{}", r.is_err());
    LOG.with(|l| {
        for (i, s) in l.borrow().iter().enumerate() {
            println!("{} {}", i, s);
        }
    });
}
