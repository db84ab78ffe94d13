//! The protocol under every order of its steps.

use loom::thread;

use super::{Message, Next, WORDS, queue};

fn message(producer: u32, number: u32) -> Message {
    let mut message = [producer; WORDS];
    message[WORDS - 1] = number;
    message
}

/// Every order with at most two preemptions: all orders take hours.
fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(check);
}

/// Takes out what is there, at most `looks` times.
fn take(
    consumer: &mut super::TokenConsumer,
    looks: usize,
    lives: impl Fn(usize) -> bool,
) -> Vec<Message> {
    let mut all = Vec::new();
    for _ in 0..looks {
        match consumer.next(&lives) {
            Next::Message(message) => all.push(message),
            Next::Waits(_) => thread::yield_now(),
            Next::Empty => break,
        }
    }
    all
}

fn is_whole(message: &Message) -> bool {
    message[..WORDS - 1].iter().all(|word| *word == message[0])
}

/// Messages arrive whole and once, each producer's in order, while the consumer looks on.
#[test]
fn messages_arrive_whole_in_order() {
    model(|| {
        let mut consumer = queue(2, 2);
        let mut one = consumer.producer().unwrap();
        let mut other = consumer.producer().unwrap();
        let threads = [
            thread::spawn(move || {
                let first = one.push(&message(1, 0)).is_ok();
                first as usize
            }),
            thread::spawn(move || {
                let first = other.push(&message(2, 0)).is_ok();
                first as usize
            }),
        ];
        let mut all = take(&mut consumer, 2, |_| true);
        let pushed: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        all.extend(take(&mut consumer, 4, |_| true));
        assert_eq!((all.len(), pushed, consumer.skipped()), (2, 2, 0));
        assert!(all.iter().all(is_whole));
        assert_ne!(all[0][0], all[1][0]);
    });
}

/// A slot is not used again before it was read.
#[test]
fn a_full_queue_refuses() {
    model(|| {
        let mut consumer = queue(1, 1);
        let mut producer = consumer.producer().unwrap();
        let sender = thread::spawn(move || {
            (0..2).filter(|number| producer.push(&message(1, *number)).is_ok()).count()
        });
        let mut all = take(&mut consumer, 2, |_| true);
        let pushed = sender.join().unwrap();
        all.extend(take(&mut consumer, 4, |_| true));
        assert_eq!(all.len(), pushed);
        assert!(all.iter().all(is_whole));
        assert_eq!(all[0], message(1, 0));
    });
}

/// A producer that dies between taking its token and publishing is skipped, and only it.
#[test]
fn the_gap_of_a_dead_producer_is_skipped() {
    model(|| {
        let mut consumer = queue(2, 2);
        let mut dead = consumer.producer().unwrap();
        let mut living = consumer.producer().unwrap();
        let dead_number = dead.number();
        let death = thread::spawn(move || {
            let _token = dead.take();
            // As a thread that is no more: nothing of it runs again, not even what would drop it.
            dead
        });
        let sender = thread::spawn(move || living.push(&message(2, 0)).is_ok());
        // It is known to be dead only when it is.
        let dead = death.join().unwrap();
        let mut all = take(&mut consumer, 2, |number| number != dead_number);
        assert!(sender.join().unwrap());
        all.extend(take(&mut consumer, 4, |number| number != dead_number));
        assert_eq!(all, [message(2, 0)]);
        assert_eq!(consumer.skipped(), 1);
        drop(dead);
    });
}
