use std::thread;

use super::{Full, Message, Next, WORDS, queue};

fn message(producer: u32, number: u32) -> Message {
    let mut message = [producer; WORDS];
    message[WORDS - 1] = number;
    message
}

#[test]
fn many_producers_keep_their_order() {
    const EACH: u32 = 20_000;
    let mut consumer = queue(64, 4);
    let threads: Vec<_> = (0..4)
        .map(|name| {
            let mut producer = consumer.producer().unwrap();
            thread::spawn(move || {
                for number in 0..EACH {
                    while producer.push(&message(name, number)) == Err(Full) {
                        thread::yield_now();
                    }
                }
            })
        })
        .collect();
    assert!(consumer.producer().is_none(), "there are four desks");
    let mut next = [0; 4];
    while next.iter().sum::<u32>() < 4 * EACH {
        match consumer.next(|_| true) {
            Next::Message(message) => {
                let name = message[0];
                assert!(message[..WORDS - 1].iter().all(|word| *word == name));
                assert_eq!(message[WORDS - 1], next[name as usize]);
                next[name as usize] += 1;
            }
            Next::Waits(_) | Next::Empty => thread::yield_now(),
        }
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!((consumer.next(|_| true), consumer.skipped()), (Next::Empty, 0));
    assert!(consumer.producer().is_some(), "desks are given back");
}

#[test]
fn a_living_producer_is_not_skipped() {
    let mut consumer = queue(4, 2);
    let mut slow = consumer.producer().unwrap();
    let mut fast = consumer.producer().unwrap();
    let token = slow.take().unwrap();
    fast.push(&message(2, 0)).unwrap();
    assert_eq!(consumer.next(|_| true), Next::Waits(slow.number()));
    slow.publish(token, &message(1, 0));
    assert_eq!(consumer.next(|_| true), Next::Message(message(1, 0)));
    assert_eq!(consumer.next(|_| true), Next::Message(message(2, 0)));
    assert_eq!(consumer.next(|_| true), Next::Empty);
}

#[test]
fn a_dead_producer_is_skipped_and_its_desk_given_out_again() {
    let mut consumer = queue(4, 1);
    let mut dead = consumer.producer().unwrap();
    let number = dead.number();
    dead.take().unwrap();
    std::mem::forget(dead);
    assert_eq!((consumer.next(|_| false), consumer.skipped()), (Next::Empty, 1));
    assert!(consumer.producer().is_none());
    consumer.bury(number);
    let mut heir = consumer.producer().unwrap();
    for number in 0..4 {
        heir.push(&message(7, number)).unwrap();
    }
    assert_eq!(heir.push(&message(7, 4)), Err(Full));
    for number in 0..4 {
        assert_eq!(consumer.next(|_| true), Next::Message(message(7, number)));
    }
}

#[test]
fn tokens_wrap() {
    let mut consumer = queue(2, 1);
    let mut producer = consumer.producer().unwrap();
    consumer.start_at(u32::MAX - 2);
    for number in 0..9 {
        producer.push(&message(1, number)).unwrap();
        assert_eq!(consumer.next(|_| true), Next::Message(message(1, number)));
    }
}
