//! Questions to the stack's worker. Answers are matched by number, and whoever waits for one has nothing else of the process's locked.
//!
//! Of the threads that wait, one listens for all. The ring of answers is not trusted: what was never asked, was answered already, or
//! has nobody any more who waits for it, is dropped.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use shm::{Consumer, SleepWord};
use transport::moving::{Carried, Reader};

/// Looks for an answer before the thread that listens sleeps: the worker is awake, or wakes at once.
const LOOKS: usize = 2000;
/// Looks until the core is left to others, again and again: the worker may be one of them. About a microsecond.
const ALONE: usize = 32;
/// Sleeps without an answer until the worker is given up; how long each takes is [`Wire::wait`]'s to say.
const SLEEPS: usize = 50;
/// Pauses without room in the ring of commands until the same; how long each takes is [`Wire::pause`]'s to say.
const PAUSES: usize = 5000;
/// Answers in a row for which nobody waits, until the worker is given up: more than the ring has at once.
const STRANGE: usize = 1000;
/// Questions whose answers may lie in the ring at the same time, however many threads ask: of up to three slots each, with a long
/// one beside them, they fit.
const MOST: usize = 64;

/// How a process wakes its worker, and waits for it.
pub trait Wire: fmt::Debug + Send + Sync {
    /// Wakes the worker if this says that it sleeps.
    fn ring(&self, sleeps: SleepWord<'_>);

    /// Waits until the worker rings for an answer, 100 ms at most. `false`: there is nobody any more.
    fn wait(&self) -> bool;

    /// Waits for a moment, 1 ms or so, and takes no ring from a thread that waits for answers. `false`: there is nobody any more.
    fn pause(&self) -> bool;
}

/// The questions of a process to one stack.
#[derive(Debug)]
pub(super) struct Asking {
    book: Mutex<Book>,
    /// Answers have come, or whoever listened does so no more.
    changed: Condvar,
    /// A thread pauses.
    pausing: Mutex<()>,
    /// How often threads have since there was room last.
    pauses: AtomicUsize,
    pub(super) wire: Box<dyn Wire>,
}

#[derive(Debug)]
struct Book {
    /// `None`: a thread listens.
    answers: Option<Consumer>,
    /// Questions so far.
    asked: u64,
    /// What became of those that somebody still has, by number.
    open: BTreeMap<u64, Outcome>,
    /// Threads that wait, without the one that listens.
    followers: usize,
    is_lost: bool,
}

#[derive(Debug)]
enum Outcome {
    Waits,
    Answered(Vec<u8>),
    /// A later question was answered: this one never will be.
    PassedOver,
}

/// A question that was asked. Who lets go of it wants no answer.
#[derive(Debug)]
pub struct Question {
    asking: Arc<Asking>,
    wants: Wants,
}

/// What whoever has a question waits for.
#[derive(Debug, Clone, Copy)]
enum Wants {
    /// The answer: it was asked with this number.
    Answer(u64),
    /// That fewer others are asked; then it is to be.
    Turn,
    /// Room in the ring of commands; the same.
    Room,
}

/// What became of a question.
#[derive(Debug)]
pub struct Answer {
    asking: Arc<Asking>,
    /// `None`: it is to be asked now. Within, `None`: nobody answers any more.
    pub(super) bytes: Option<Option<Vec<u8>>>,
}

/// What a call in two parts has of its question.
#[derive(Debug, Default)]
pub(super) struct Split {
    /// In the first part: what was asked.
    pub(super) question: Option<Question>,
    /// In the second: what became of it, as in [`Answer`].
    pub(super) answer: Option<Option<Vec<u8>>>,
}

impl Asking {
    pub(super) fn new(answers: Consumer, wire: Box<dyn Wire>) -> Self {
        let (answers, open) = (Some(answers), BTreeMap::new());
        let book = Book { answers, asked: 0, open, followers: 0, is_lost: false };
        let (book, changed, pausing) = (Mutex::new(book), Condvar::new(), Mutex::new(()));
        Self { book, changed, pausing, pauses: AtomicUsize::new(0), wire }
    }

    /// A question that is about to be asked. Numbers are in the order in which the worker is asked. `waits`: its answer may lie in
    /// the ring beside those of others, whose number is bounded.
    pub(super) fn question(self: &Arc<Self>, waits: bool) -> Question {
        let mut book = self.lock();
        let goes = !waits || book.open.len() < MOST;
        let wants = if goes { Wants::Answer(book.begin()) } else { Wants::Turn };
        drop(book);
        Question { asking: Arc::clone(self), wants }
    }

    /// A question for which the ring of commands has no room.
    pub(super) fn lacks_room(self: &Arc<Self>) -> Question {
        Question { asking: Arc::clone(self), wants: Wants::Room }
    }

    /// Waits for a moment for room in the ring of commands, of which nobody tells. `false`: the worker takes none.
    pub(super) fn pause(&self) -> bool {
        // One thread after the other, so that their number says how long it takes.
        let _turn = self.pausing.lock().unwrap_or_else(PoisonError::into_inner);
        self.pauses.fetch_add(1, Ordering::Relaxed) < PAUSES && self.wire.pause()
    }

    /// The ring of commands had room.
    pub(super) fn found_room(&self) {
        self.pauses.store(0, Ordering::Relaxed);
    }

    /// Nobody answers any more: whoever waits does so no longer.
    pub(super) fn lose(&self) {
        self.lock().is_lost = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a question may be asked.
    fn wait_for_turn(&self) {
        let mut book = self.lock();
        while book.open.len() >= MOST && !book.is_lost {
            book = self.follow(book);
        }
    }

    /// Waits for an answer. `None`: nobody answers any more.
    fn wait_for(&self, number: u64) -> Option<Vec<u8>> {
        let mut book = self.lock();
        let mut answers = loop {
            if let Some(outcome) = book.outcome(number) {
                return outcome;
            }
            if let Some(answers) = book.answers.take() {
                break answers;
            }
            book = self.follow(book);
        };
        drop(book);
        let outcome = self.listen(&mut answers, number);
        let mut book = self.lock();
        book.answers = Some(answers);
        book.is_lost |= outcome.is_none();
        self.tell(book);
        outcome
    }

    /// Takes in answers to all until that one is there.
    fn listen(&self, answers: &mut Consumer, number: u64) -> Option<Vec<u8>> {
        let (mut bytes, mut silent, mut strange) = (Vec::new(), 0, 0);
        while silent < SLEEPS && strange < STRANGE {
            let has_heard = look(answers, &mut bytes);
            let mut book = self.lock();
            let is_new = has_heard && book.take_in(&bytes);
            if let Some(outcome) = book.outcome(number) {
                return outcome;
            }
            if is_new {
                self.tell(book);
                (silent, strange) = (0, 0);
                continue;
            }
            drop(book);
            if has_heard {
                strange += 1;
                continue;
            }
            silent += 1;
            if silent < SLEEPS && !self.wire.wait() {
                return None;
            }
        }
        None
    }

    /// Waits until something has changed.
    fn follow<'a>(&self, mut book: MutexGuard<'a, Book>) -> MutexGuard<'a, Book> {
        book.followers += 1;
        book = self.changed.wait(book).unwrap_or_else(PoisonError::into_inner);
        book.followers -= 1;
        book
    }

    /// Those that wait look again. The book is closed first: they need it.
    fn tell(&self, book: MutexGuard<'_, Book>) {
        let has_followers = book.followers > 0;
        drop(book);
        if has_followers {
            self.changed.notify_all();
        }
    }
}

impl Book {
    fn begin(&mut self) -> u64 {
        let number = self.asked;
        self.asked += 1;
        self.open.insert(number, Outcome::Waits);
        number
    }

    /// Takes in an answer. `false`: nobody waits for it.
    fn take_in(&mut self, answer: &[u8]) -> bool {
        let mut from = Reader::new(answer, 0, 0);
        let Ok(number) = u64::take(&mut from) else { return false };
        let Some(outcome) = self.open.get_mut(&number) else { return false };
        if !matches!(outcome, Outcome::Waits) {
            return false;
        }
        *outcome = Outcome::Answered(from.slice(from.left()).unwrap_or_default().to_vec());
        // The worker answers in order.
        for (_, earlier) in self.open.range_mut(..number) {
            if matches!(earlier, Outcome::Waits) {
                *earlier = Outcome::PassedOver;
            }
        }
        true
    }

    /// What became of a question, once that is known; within, `None`: nobody answers it.
    fn outcome(&mut self, number: u64) -> Option<Option<Vec<u8>>> {
        match self.open.get_mut(&number) {
            Some(Outcome::Answered(answer)) => Some(Some(std::mem::take(answer))),
            Some(Outcome::Waits) if !self.is_lost => None,
            _ => Some(None),
        }
    }
}

/// Looks for an answer. If none has come, the worker rings for the next.
fn look(answers: &mut Consumer, bytes: &mut Vec<u8>) -> bool {
    for look in 0..LOOKS {
        if look + 1 == LOOKS {
            answers.sleeps().announce();
        }
        let Some(taken) = answers.next() else {
            if look % ALONE == ALONE - 1 {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
            continue;
        };
        answers.sleeps().withdraw();
        bytes.resize(taken.length(), 0);
        answers.copy(&taken, bytes);
        answers.release(taken);
        return true;
    }
    false
}

impl Question {
    /// `None`: it is not to be asked yet.
    pub(super) fn number(&self) -> Option<u64> {
        match self.wants {
            Wants::Answer(number) => Some(number),
            Wants::Turn | Wants::Room => None,
        }
    }

    /// Waits until it is answered or may be asked, or until nobody answers any more.
    #[must_use]
    pub fn wait(self) -> Answer {
        let bytes = match self.wants {
            Wants::Answer(number) => Some(self.asking.wait_for(number)),
            Wants::Turn => {
                self.asking.wait_for_turn();
                None
            }
            Wants::Room => (!self.asking.pause()).then_some(None),
        };
        Answer { asking: Arc::clone(&self.asking), bytes }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        let Some(number) = self.number() else { return };
        let mut book = self.asking.lock();
        let was_full = book.open.len() >= MOST;
        book.open.remove(&number);
        if was_full {
            self.asking.tell(book);
        }
    }
}

impl Answer {
    /// Whether that was asked there.
    pub(super) fn is_of(&self, asking: &Arc<Asking>) -> bool {
        Arc::ptr_eq(&self.asking, asking)
    }
}

#[cfg(test)]
mod tests;
