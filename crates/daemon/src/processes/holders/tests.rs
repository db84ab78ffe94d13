use super::*;

use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use shm::Segment;

const BYTES: usize = 1 << 16;
const BOUND: MemoryBound = MemoryBound { section: "test", mebibytes: 2, pieces: 20 };

impl Accounts {
    fn bytes(&self, uid: u32) -> usize {
        self.of([uid; 2]).0
    }
}

/// How a process can hold memory.
type Hold = fn(&Segment) -> Box<dyn Send>;

/// Memory of a user.
fn made(holders: &Holders, accounts: &mut Accounts, uid: u32) -> Segment {
    let segment = Segment::create("held", BYTES).unwrap();
    holders.watch(&segment, accounts.charge([uid; 2], BYTES, BOUND).unwrap()).unwrap();
    segment
}

fn reopened(segment: &Segment, flags: OFlags) -> OwnedFd {
    let path = format!("/proc/self/fd/{}", segment.as_fd().as_raw_fd());
    open(path, flags | OFlags::CLOEXEC, Mode::empty()).unwrap()
}

/// Soon: a process that another test starts has all files for a moment.
fn comes(mut holds: impl FnMut() -> bool) -> bool {
    (0..500).any(|_| {
        let there = holds();
        if !there {
            sleep(Duration::from_millis(10));
        }
        there
    })
}

#[test]
fn memory_counts_until_nobody_holds_it() {
    let (holders, mut accounts) = (Holders::new(), Accounts::default());
    let ways: [Hold; 5] = [
        |segment| Box::new(segment.as_fd().try_clone_to_owned().unwrap()),
        |segment| Box::new(reopened(segment, OFlags::RDWR)),
        |segment| Box::new(reopened(segment, OFlags::RDONLY)),
        |segment| Box::new(reopened(segment, OFlags::PATH)),
        |segment| Box::new(Segment::from_file(reopened(segment, OFlags::RDWR)).unwrap()),
    ];
    for (way, hold) in ways.into_iter().enumerate() {
        let segment = made(&holders, &mut accounts, 7);
        let _other = made(&holders, &mut accounts, 8);
        let held = hold(&segment);
        drop(segment);
        // Long enough for what another test has started.
        sleep(Duration::from_millis(50));
        holders.settle();
        assert_eq!(accounts.bytes(7), BYTES, "way {way}");
        drop(held);
        let gone = comes(|| {
            holders.settle();
            accounts.bytes(7) == 0
        });
        assert!(gone && accounts.bytes(8) >= BYTES, "way {way}");
    }
    let gone = comes(|| {
        holders.settle();
        accounts.bytes(8) == 0
    });
    assert!(gone && holders.held().debits.is_empty());
}

#[test]
fn nothing_counts_for_ever_when_events_were_lost() {
    let (holders, mut accounts) = (Holders::new(), Accounts::default());
    // Watches are listed in hexadecimal.
    let mut all: Vec<_> = (0..20).map(|_| made(&holders, &mut accounts, 7)).collect();
    all.truncate(17);
    let watches = holders.held().watches.as_ref().unwrap().try_clone().unwrap();
    assert!(comes(|| listed(&watches).unwrap().len() == 17));
    let mut space = [MaybeUninit::<u8>::uninit(); EVENTS];
    while rustix::io::read(&watches, &mut space).is_ok() {}
    holders.settle();
    assert_eq!(accounts.bytes(7), 20 * BYTES, "nobody has told");
    holders.held().missed = true;
    holders.settle();
    assert_eq!(accounts.bytes(7), 17 * BYTES);
    assert!(!holders.held().missed);
}

#[test]
fn memory_that_cannot_be_watched_is_refused_until_it_can() {
    static TOO_MANY: AtomicBool = AtomicBool::new(true);
    fn make() -> io::Result<OwnedFd> {
        if TOO_MANY.load(Ordering::SeqCst) {
            return Err(io::Error::other("too many"));
        }
        Ok(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?)
    }
    let (holders, mut accounts) = (Holders::with(make), Accounts::default());
    let segment = Segment::create("unwatched", BYTES).unwrap();
    let debit = accounts.charge([7; 2], BYTES, BOUND).unwrap();
    let refusal = holders.watch(&segment, debit).unwrap_err();
    assert!(refusal.message.contains("can't be watched: too many"), "{refusal}");
    holders.settle();
    assert_eq!(accounts.bytes(7), 0, "who gets none owes nothing");
    TOO_MANY.store(false, Ordering::SeqCst);
    let _segment = made(&holders, &mut accounts, 7);
    assert_eq!(accounts.bytes(7), BYTES);
}

#[test]
fn two_users_have_one_account_beside_their_own() {
    let mut accounts = Accounts::with(100);
    let own = accounts.charge([7; 2], 1, BOUND).unwrap();
    let both = [(); 2].map(|()| accounts.charge([8, 7], 1 << 20, BOUND).unwrap());
    let all = [[7, 7], [7, 8], [8, 7], [8, 8]].map(|users| accounts.of(users));
    assert_eq!(all, [(1, 1), (2 << 20, 2), (2 << 20, 2), (0, 0)]);
    let refusal = accounts.charge([7, 8], 1, BOUND).unwrap_err();
    assert!(refusal.message.contains("test.memory allows one user 2"), "{refusal}");
    assert!(accounts.check([7; 2], 1 << 20, BOUND).is_ok(), "what both have is not its own");
    drop((own, both));
    let last = accounts.charge([9; 2], 3, BOUND).unwrap();
    assert_eq!((accounts.of([7, 8]), accounts.accounts.len()), ((0, 0), 1), "forgotten");
    assert_eq!((accounts.bytes(9), last.bytes()), (3, 3));
}

#[test]
fn pieces_are_bounded_and_some_are_roots() {
    let mut accounts = Accounts::with(32);
    let mut all: Vec<_> = (0..20).map(|_| accounts.charge([7; 2], 1, BOUND).unwrap()).collect();
    let refusal = accounts.charge([7; 2], 1, BOUND).unwrap_err();
    assert!(refusal.message.contains("user 7 hold 20 pieces"), "{refusal}");
    all.extend((0..8).map(|_| accounts.charge([8; 2], 1, BOUND).unwrap()));
    let refusal = accounts.charge([9; 2], 1, BOUND).unwrap_err();
    assert!(refusal.message.contains("all users hold 28 pieces"), "{refusal}");
    all.extend((0..4).map(|_| accounts.charge([0; 2], 1, BOUND).unwrap()));
    assert!(accounts.check([0; 2], 1, BOUND).is_err());
    all.remove(0);
    assert!(accounts.check([0; 2], 1, BOUND).is_ok());
}
