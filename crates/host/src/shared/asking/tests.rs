use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use shm::{Meta, Producer, Segment};

use super::*;
use crate::shared::Plan;
use crate::shared::call::numbered;

/// A worker that rings nobody, until it is gone.
#[derive(Debug)]
struct Mute(Arc<AtomicBool>);

impl Wire for Mute {
    fn ring(&self, _: SleepWord<'_>) {}

    fn wait(&self) -> bool {
        thread::sleep(Duration::from_millis(20));
        !self.0.load(Ordering::Relaxed)
    }

    fn pause(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

/// Questions, where the worker writes its answers, and whether it is gone.
fn begin() -> (Arc<Asking>, Producer, Arc<AtomicBool>) {
    let plan = Plan::new(64, 16).unwrap();
    let segment = Arc::new(Segment::create("test", plan.bytes()).unwrap());
    let is_gone = Arc::new(AtomicBool::new(false));
    let wire = Box::new(Mute(Arc::clone(&is_gone)));
    let asking = Asking::new(plan.process(&segment).unwrap().answers, wire);
    (Arc::new(asking), plan.worker(&segment).unwrap().answers, is_gone)
}

fn answer(worker: &mut Producer, number: u64, bytes: &[u8]) {
    worker.push(&numbered(number, bytes), Meta::default()).unwrap();
}

fn heard(question: Question) -> Option<Vec<u8>> {
    question.wait().bytes.unwrap()
}

fn is_over(asking: &Asking) -> bool {
    let book = asking.lock();
    book.open.is_empty() && book.answers.is_some() && book.followers == 0
}

#[test]
fn each_thread_gets_its_own_answer() {
    let (asking, mut worker, _) = begin();
    for round in 0..20 {
        let questions: Vec<_> = (0..8).map(|_| asking.question(true)).collect();
        thread::scope(|scope| {
            let wait = |question: Question| {
                let number = question.number().unwrap();
                scope.spawn(move || (number, heard(question)))
            };
            let threads: Vec<_> = questions.into_iter().map(wait).collect();
            for number in round * 8..round * 8 + 8 {
                answer(&mut worker, number, &[number as u8; 3]);
                thread::yield_now();
            }
            for thread in threads {
                let (number, bytes) = thread.join().unwrap();
                assert_eq!(bytes, Some(vec![number as u8; 3]));
            }
        });
        assert!(is_over(&asking));
    }
}

#[test]
fn what_nobody_waits_for_is_dropped() {
    let (asking, mut worker, _) = begin();
    drop(asking.question(true));
    let (first, second) = (asking.question(true), asking.question(true));
    worker.push(b"short", Meta::default()).unwrap();
    let said: [(u64, &[u8]); 6] = [
        (0, b"late"),
        (3, b"not asked"),
        (u64::MAX, b"never asked"),
        (1, b"first"),
        (1, b"once more"),
        (2, b"second"),
    ];
    for (number, bytes) in said {
        answer(&mut worker, number, bytes);
    }
    assert_eq!(heard(first).unwrap(), b"first");
    assert_eq!(heard(second).unwrap(), b"second");
    assert!(is_over(&asking));
}

#[test]
fn who_answers_only_what_nobody_asked_is_given_up() {
    let (asking, mut worker, _) = begin();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let question = asking.question(true);
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = worker.push(&numbered(7, b"not asked"), Meta::default());
            }
        });
        let outcome = heard(question);
        over.store(true, Ordering::Relaxed);
        assert_eq!(outcome, None);
    });
    assert!(is_over(&asking));
}

#[test]
fn an_answer_passes_over_earlier_questions() {
    let (asking, mut worker, _) = begin();
    let (first, second) = (asking.question(true), asking.question(true));
    answer(&mut worker, 1, b"second");
    assert_eq!(heard(second).unwrap(), b"second");
    assert_eq!(heard(first), None);
    assert!(is_over(&asking));
}

#[test]
fn when_the_worker_goes_nobody_waits_and_nothing_is_left() {
    let lost: [fn(&Asking, &AtomicBool); 2] =
        [|_, is_gone| is_gone.store(true, Ordering::Relaxed), |asking, _| asking.lose()];
    for lose in lost {
        let (asking, _worker, is_gone) = begin();
        let questions: Vec<_> = (0..3).map(|_| asking.question(true)).collect();
        thread::scope(|scope| {
            let wait = |question: Question| scope.spawn(|| heard(question));
            let threads: Vec<_> = questions.into_iter().map(wait).collect();
            lose(&asking, &is_gone);
            for thread in threads {
                assert_eq!(thread.join().unwrap(), None);
            }
        });
        assert!(is_over(&asking));
    }
}

#[test]
fn who_finds_no_room_asks_again_until_the_worker_is_given_up() {
    let (asking, _worker, is_gone) = begin();
    let outcome = || asking.lacks_room().wait().bytes;
    for _ in 0..PAUSES {
        assert_eq!(outcome(), None, "it is to be asked now");
    }
    assert_eq!(outcome(), Some(None));
    asking.found_room();
    assert_eq!(outcome(), None);
    is_gone.store(true, Ordering::Relaxed);
    assert_eq!(outcome(), Some(None));
}

#[test]
fn answers_of_all_that_ask_at_once_fit_the_ring() {
    let (asking, mut worker, _) = begin();
    let crowd: Vec<_> = (0..MOST).map(|_| asking.question(true)).collect();
    let late = asking.question(true);
    assert_eq!(late.number(), None);
    let long = asking.question(false);
    for question in &crowd {
        answer(&mut worker, question.number().unwrap(), &[7; 1500]);
    }
    answer(&mut worker, long.number().unwrap(), &[8; crate::shared::PIECE]);
    thread::scope(|scope| {
        let late = scope.spawn(|| late.wait().bytes);
        drop(crowd);
        assert_eq!(late.join().unwrap(), None, "it is to be asked now");
    });
    assert_eq!(heard(long).unwrap().len(), crate::shared::PIECE);
    assert!(asking.question(true).number().is_some() && is_over(&asking));
}
