//! What processes ask of the control thread: one thing after the other, and never more than a quarter of its time. Root's come
//! first, and wait for nobody's rest; so does what the daemon's own threads tell it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until};

/// Things that wait to be done. Who asks for much waits for nobody but itself ([`Control::of`]).
const WAITING: usize = 256;
/// What is done is followed by a rest of [`REST`] times as long. Rests that are due come together, once there is so much to rest
/// from.
const REST: u32 = 3;
const SHORT: Duration = Duration::from_micros(200);
/// Between two looks whether what is asked is done.
const LOOK: Duration = Duration::from_millis(500);

/// A request, parsed and paced, as what is to be done with the daemon.
pub(crate) type Act<D> = Box<dyn FnOnce(&mut D) + Send>;

/// The way from the users' threads to the control thread, which has `D`.
#[derive(Debug)]
pub(crate) struct Control<D> {
    acts: mpsc::Sender<Act<D>>,
    root_acts: mpsc::Sender<Act<D>>,
    /// Taken until what a user asks is done: each has one thing at a time among those that wait.
    turn: Option<Arc<Semaphore>>,
}

/// The other end of it.
pub(crate) struct Asked<D> {
    acts: mpsc::Receiver<Act<D>>,
    root_acts: mpsc::Receiver<Act<D>>,
}

/// Both ends.
pub(crate) fn asks<D>() -> (Control<D>, Asked<D>) {
    let (acts, asked) = mpsc::channel(WAITING);
    let (root_acts, root_asked) = mpsc::channel(WAITING);
    (Control { acts, root_acts, turn: None }, Asked { acts: asked, root_acts: root_asked })
}

impl<D> Clone for Control<D> {
    fn clone(&self) -> Self {
        let (acts, root_acts) = (self.acts.clone(), self.root_acts.clone());
        Self { acts, root_acts, turn: self.turn.clone() }
    }
}

impl<D: 'static> Control<D> {
    /// The same for a user's connections, which take turns.
    pub(crate) fn of(&self, uid: u32, turn: &Arc<Semaphore>) -> Self {
        let (acts, root_acts) = (&self.acts, self.root_acts.clone());
        let acts = if uid == 0 { root_acts.clone() } else { acts.clone() };
        Self { acts, root_acts, turn: Some(Arc::clone(turn)) }
    }

    /// Has something done on the control thread, which goes on when the caller does not wait for it. `None`: the daemon
    /// ends.
    pub(crate) async fn ask<R: Send + 'static>(
        &self,
        act: impl FnOnce(&mut D) -> R + Send + 'static,
    ) -> Option<R> {
        let turn = match &self.turn {
            Some(turn) => Some(Arc::clone(turn).acquire_owned().await.ok()?),
            None => None,
        };
        let (answer, answered) = oneshot::channel();
        let act = Box::new(move |daemon: &mut D| {
            let done = act(daemon);
            // Not before, though the caller may be gone.
            drop(turn);
            if let Err(unwanted) = answer.send(done) {
                // Whoever asked is gone. What the answer holds may be memory: others would wait while it is unmapped.
                drop(spawn_blocking(move || drop(unwanted)));
            }
        });
        self.acts.send(act).await.ok()?;
        answered.await.ok()
    }
}

impl<D: 'static> Control<D> {
    /// Has something done on the control thread for a thread of the daemon, which does not wait until it is done, nor behind what
    /// users ask. Not for threads that wait for others.
    pub(crate) fn tell(&self, act: impl FnOnce(&mut D) + Send + 'static) {
        // A daemon that ends needs it no more.
        let _ = self.root_acts.blocking_send(Box::new(act));
    }

    /// Asks for nothing, again and again, for as long as there is a daemon: `done` is called each time that this was done.
    pub(crate) async fn look(self, done: impl Fn()) {
        let own = self.of(0, &Arc::new(Semaphore::new(1)));
        while own.ask(|_| ()).await.is_some() {
            done();
            sleep(LOOK).await;
        }
    }
}

impl<D: 'static> Asked<D> {
    /// Has done what is asked, for ever.
    pub(crate) async fn serve(mut self, perform: impl Fn(Act<D>)) {
        let mut pace = Pace { rested: Instant::now() };
        loop {
            let acts = &mut self.acts;
            let next = async {
                sleep_until(pace.next()).await;
                acts.recv().await
            };
            tokio::select! {
                biased;
                Some(act) = self.root_acts.recv() => perform(act),
                Some(act) = next => {
                    let begun = Instant::now();
                    perform(act);
                    pace.spend(begun, begun.elapsed());
                }
                else => return,
            }
        }
    }
}

/// When the control thread does what users ask.
struct Pace {
    /// Until then, it has to rest from what it has done.
    rested: Instant,
}

impl Pace {
    /// When the next thing may begin.
    fn next(&self) -> Instant {
        self.rested.checked_sub(SHORT * (1 + REST)).unwrap_or(self.rested)
    }

    fn spend(&mut self, begun: Instant, took: Duration) {
        self.rested = self.rested.max(begun) + took * (1 + REST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::future::Future;
    use std::sync::Mutex;

    use tokio::time::timeout;

    type Order = Arc<Mutex<Vec<&'static str>>>;

    /// Has it noted when it is done; it takes that long.
    async fn ask(control: &Control<Order>, name: &'static str, takes: Duration) {
        let act = move |order: &mut Order| {
            std::thread::sleep(takes);
            order.lock().unwrap().push(name);
        };
        control.ask(act).await.unwrap();
    }

    /// Serves until all have been answered; in which order.
    async fn order(asked: Asked<Order>, asking: impl Future<Output = ()>) -> Vec<&'static str> {
        let order = Order::default();
        let serve = asked.serve(|act| act(&mut Arc::clone(&order)));
        tokio::select! {
            () = serve => {}
            () = asking => {}
        }
        let order = order.lock().unwrap();
        order.clone()
    }

    const NO_TIME: Duration = Duration::ZERO;

    /// Who is last where root asks twice, and two users once, the first of them for much.
    async fn last_beside_root() -> &'static str {
        let (control, asked) = asks::<Order>();
        let turn = || Arc::new(Semaphore::new(1));
        let (root, one, two) =
            (control.of(0, &turn()), control.of(1, &turn()), control.of(2, &turn()));
        let asking = async {
            tokio::join!(
                ask(&one, "one", Duration::from_millis(50)),
                ask(&two, "two", NO_TIME),
                async {
                    tokio::task::yield_now().await;
                    ask(&root, "root", NO_TIME).await;
                    ask(&root, "root again", NO_TIME).await;
                }
            );
        };
        *order(asked, asking).await.last().unwrap()
    }

    #[tokio::test]
    async fn root_waits_for_no_rest() {
        // A thread that stands still for as long as a rest finds it over: then once more.
        let mut last = "";
        for _ in 0..10 {
            last = last_beside_root().await;
            if last == "two" {
                break;
            }
        }
        assert_eq!(last, "two");
    }

    #[test]
    fn short_things_take_no_more_than_a_quarter_either() {
        let begin = Instant::now();
        for micros in [1, 30, 200, 50_000] {
            let took = Duration::from_micros(micros);
            let (mut pace, mut now) = (Pace { rested: begin }, begin);
            for _ in 0..10_000 {
                now = now.max(pace.next());
                pace.spend(now, took);
                now += took;
            }
            let (done, passed) = (took * 10_000, now - begin);
            assert!(done * 4 <= passed + SHORT * 4 + took * 4, "{done:?} of {passed:?}");
            // What comes now and then does not wait.
            let mut later = now + took * 4 + SHORT * 4;
            for _ in 0..100 {
                assert!(pace.next() <= later);
                pace.spend(later, took);
                later += took * 4;
            }
        }
    }

    /// Says which thread drops it.
    struct Heavy(std::sync::mpsc::Sender<std::thread::ThreadId>);

    impl Drop for Heavy {
        fn drop(&mut self) {
            self.0.send(std::thread::current().id()).unwrap();
        }
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_dropped_elsewhere() {
        let (control, asked) = asks::<Order>();
        let (tell, told) = std::sync::mpsc::channel();
        // It is left with the control thread, and its process ends.
        tokio::select! {
            biased;
            _ = control.ask(move |_: &mut Order| Heavy(tell)) => {}
            () = tokio::task::yield_now() => {}
        }
        drop(control);
        asked.serve(|act| act(&mut Order::default())).await;
        let dropped = tokio::task::spawn_blocking(move || told.recv().unwrap()).await.unwrap();
        assert_ne!(dropped, std::thread::current().id());
    }

    #[tokio::test]
    async fn what_the_daemon_tells_does_not_wait_behind_users() {
        let (control, asked) = asks::<Order>();
        for _ in 0..WAITING {
            let act = |order: &mut Order| order.lock().unwrap().push("user");
            assert!(control.acts.try_send(Box::new(act)).is_ok());
        }
        let own = control.clone();
        let tell = spawn_blocking(move || own.tell(|order| order.lock().unwrap().push("own")));
        timeout(Duration::from_secs(20), tell).await.unwrap().unwrap();
        drop(control);
        let order = order(asked, std::future::pending()).await;
        assert_eq!((order[0], order.len()), ("own", WAITING + 1));
    }

    #[tokio::test]
    async fn who_looks_notes_only_what_was_done() {
        let (control, asked) = asks::<Order>();
        let rounds = Mutex::new(0);
        let mut look = std::pin::pin!(control.look(|| *rounds.lock().unwrap() += 1));
        assert!(timeout(Duration::from_millis(1), &mut look).await.is_err());
        assert_eq!(*rounds.lock().unwrap(), 0, "nobody serves");
        let twice = async {
            while *rounds.lock().unwrap() < 2 {
                sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            () = asked.serve(|act| act(&mut Order::default())) => panic!("it ends"),
            () = &mut look => panic!("it ends"),
            twice = timeout(Duration::from_secs(20), twice) => twice.unwrap(),
        }
        let ended = timeout(Duration::from_secs(20), &mut look).await;
        assert!(ended.is_ok(), "the daemon has ended");
        assert_eq!(*rounds.lock().unwrap(), 2);
    }

    #[tokio::test]
    async fn who_does_not_wait_for_an_answer_takes_no_more_places() {
        let (control, asked) = asks::<Order>();
        let user = control.of(1, &Arc::new(Semaphore::new(1)));
        for _ in 0..2 * WAITING {
            let gone = timeout(Duration::ZERO, ask(&user, "gone", NO_TIME)).await;
            assert!(gone.is_err(), "nobody serves");
        }
        assert_eq!(control.acts.capacity(), WAITING - 1);
        drop((control, user));
        let order = order(asked, std::future::pending()).await;
        assert_eq!(order, ["gone"]);
    }

    #[tokio::test]
    async fn who_asks_for_much_waits_for_itself() {
        let (control, asked) = asks::<Order>();
        let turn = || Arc::new(Semaphore::new(1));
        let (much, one) = (control.of(1, &turn()), control.of(2, &turn()));
        let asking = async {
            let much = async {
                tokio::join!(
                    ask(&much, "a", NO_TIME),
                    ask(&much, "b", NO_TIME),
                    ask(&much, "c", NO_TIME)
                )
            };
            tokio::join!(much, ask(&one, "one", NO_TIME));
        };
        let order = order(asked, asking).await;
        assert_eq!(order[..2], ["a", "one"], "{order:?}");
    }
}
