//! Control messages of many threads for one, in the order in which they are given: a queue behind one lock, the token queue,
//! and a queue for each pair of threads.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use shm::tokens::{self, Message, Next, WORDS};
use shm::{Consumer, Layout, Meta, Producer, Segment};

use crate::failure::Failure;
use crate::machine;
use crate::results::{Better, Outcome};
use crate::terminal::Parts;
use crate::turns::Rounds;

use super::{Extent, threads};

/// Messages that a queue has room for.
const ROOM: usize = 1024;
/// Bytes of a message.
const BYTES: usize = WORDS * 4;
/// Looks in vain before another thread gets the core.
const LOOKS: u32 = 64;

/// How messages are passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Lock,
    Tokens,
    Pairs,
}

impl Way {
    const ALL: [Self; 3] = [Self::Lock, Self::Tokens, Self::Pairs];

    fn name(self) -> &'static str {
        match self {
            Self::Lock => "a queue behind one lock",
            Self::Tokens => "token queue",
            Self::Pairs => "a queue per pair",
        }
    }

    /// Messages per second.
    fn turn(self, extent: Extent, producers: usize) -> Result<f64, Failure> {
        match self {
            Self::Lock => with_lock(extent, producers),
            Self::Tokens => with_tokens(extent, producers),
            Self::Pairs => with_pairs(extent, producers),
        }
    }
}

/// Steps of the bar: turns.
pub(super) fn steps(extent: Extent) -> usize {
    threads(extent).count() * Way::ALL.len() * extent.rounds as usize
}

pub(super) fn measure(extent: Extent, bar: &Parts) -> Result<Vec<Outcome>, Failure> {
    let mut outcomes = Vec::new();
    for producers in threads(extent) {
        let rounds = Rounds::take(&Way::ALL, extent.rounds, |way| {
            let rate = way.turn(extent, producers);
            bar.step();
            rate
        })?;
        let rates = |way| rounds.samples(way, |rate| *rate);
        for way in [Way::Tokens, Way::Pairs] {
            let name = format!("control messages, {}", way.name());
            let outcome = Outcome::new(&name, "1/s", rates(way))
                .with(&[("producers", producers.into())])
                .beside(Way::Lock.name(), &rates(Way::Lock), Better::More);
            outcomes.push(outcome);
        }
    }
    Ok(outcomes)
}

/// Waits a little; after many times in a row, longer.
#[derive(Debug, Default)]
struct Patience(u32);

impl Patience {
    fn wait(&mut self) {
        self.0 += 1;
        if self.0 % LOOKS == 0 {
            thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

fn with_lock(extent: Extent, producers: usize) -> Result<f64, Failure> {
    let queue: Arc<Mutex<VecDeque<Message>>> = Arc::default();
    let send = |_| {
        let queue = Arc::clone(&queue);
        Ok(move |message: &Message| {
            let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            let has_room = queue.len() < ROOM;
            if has_room {
                queue.push_back(*message);
            }
            has_room
        })
    };
    let take = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    carry(extent, producers, send, take)
}

fn with_tokens(extent: Extent, producers: usize) -> Result<f64, Failure> {
    let mut consumer = tokens::queue(ROOM, producers);
    let mut ends: Vec<_> = (0..producers).map(|_| consumer.producer()).collect();
    let send = |_| {
        let mut producer = ends.pop().flatten().ok_or(Failure::Thread)?;
        Ok(move |message: &Message| producer.push(message).is_ok())
    };
    let take = || match consumer.next(|_| true) {
        Next::Message(message) => Some(message),
        Next::Waits(_) | Next::Empty => None,
    };
    carry(extent, producers, send, take)
}

fn with_pairs(extent: Extent, producers: usize) -> Result<f64, Failure> {
    let layout = Layout::new(ROOM as u32, BYTES as u32)?;
    let (mut ends, mut queues): (Vec<Producer>, Vec<Consumer>) = (Vec::new(), Vec::new());
    for _ in 0..producers {
        let segment = Arc::new(Segment::create("millrace-bench", layout.bytes())?);
        let region = || segment.region(0, layout.bytes()).ok_or(Failure::Thread);
        queues.push(Consumer::new(region()?, layout)?);
        ends.push(Producer::new(region()?, layout)?);
    }
    let send = |_| {
        let mut producer = ends.pop().ok_or(Failure::Thread)?;
        Ok(move |message: &Message| {
            let mut bytes = [0; BYTES];
            for (place, word) in bytes.chunks_exact_mut(4).zip(message) {
                place.copy_from_slice(&word.to_ne_bytes());
            }
            producer.push(&bytes, Meta::default()).is_ok()
        })
    };
    let mut turn = 0;
    let take = || {
        for _ in 0..queues.len() {
            turn = (turn + 1) % queues.len();
            let Some(queue) = queues.get_mut(turn) else { continue };
            let Some(taken) = queue.next() else { continue };
            let mut bytes = [0; BYTES];
            queue.copy(&taken, &mut bytes);
            queue.release(taken);
            let mut message = [0; WORDS];
            for (word, piece) in message.iter_mut().zip(bytes.chunks_exact(4)) {
                *word = piece.try_into().map_or(0, u32::from_ne_bytes);
            }
            return Some(message);
        }
        None
    };
    carry(extent, producers, send, take)
}

/// Carries messages from producers to this thread, and sees that each one's come in order. Gives messages per second.
fn carry<S: FnMut(&Message) -> bool + Send>(
    extent: Extent,
    producers: usize,
    mut sender: impl FnMut(usize) -> Result<S, Failure>,
    mut take: impl FnMut() -> Option<Message>,
) -> Result<f64, Failure> {
    let cores = machine::cores();
    let core = |at: usize| cores.get(at % cores.len().max(1)).copied().unwrap_or(0);
    let each = (extent.messages / producers) as u32;
    let senders = (0..producers).map(&mut sender).collect::<Result<Vec<_>, _>>()?;
    thread::scope(|scope| {
        let begin = Instant::now();
        for (number, mut send) in senders.into_iter().enumerate() {
            let core = core(number + 1);
            scope.spawn(move || {
                // Without its core, it is slower, and nothing else.
                let _ = machine::pin(core);
                let mut message = [0; WORDS];
                let mut patience = Patience::default();
                for count in 0..each {
                    [message[0], message[1]] = [number as u32, count];
                    while !send(&message) {
                        patience.wait();
                    }
                }
            });
        }
        machine::on(core(0), || {
            let mut expected = vec![0; producers];
            let mut patience = Patience::default();
            let mut left = each as usize * producers;
            while left > 0 {
                let Some([number, count, ..]) = take() else {
                    patience.wait();
                    continue;
                };
                match expected.get_mut(number as usize) {
                    Some(next) if *next == count => *next += 1,
                    _ => return Err(Failure::Order(number, count)),
                }
                left -= 1;
            }
            Ok(f64::from(each) * producers as f64 / begin.elapsed().as_secs_f64())
        })
    })
}
