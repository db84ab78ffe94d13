//! The paths for what is most frequent do what the general steps do: the same packets at the same times, the same
//! events, the same state.

use proptest::prelude::*;

use super::pair::*;
use crate::options::{MILLISECOND, SECOND};
use crate::tcp::hot::flag;
use crate::*;

/// What an application does next, and how much time passes then.
#[derive(Debug, Clone)]
enum Call {
    Send(usize),
    More(usize),
    Record(usize),
    Read(usize),
    Cork(bool),
    NoDelay(bool),
    Shutdown,
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        8 => (1..3000usize).prop_map(Call::Send),
        8 => (1..200usize).prop_map(Call::Send),
        2 => Just(Call::Send(1448)),
        1 => (1..3000usize).prop_map(Call::More),
        1 => (1..300usize).prop_map(Call::Record),
        12 => (1..70_000usize).prop_map(Call::Read),
        1 => any::<bool>().prop_map(Call::Cork),
        1 => any::<bool>().prop_map(Call::NoDelay),
        1 => Just(Call::Shutdown),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let algorithm = prop_oneof![
        4 => Just(Algorithm::Cubic), 1 => Just(Algorithm::NewReno), 1 => Just(Algorithm::Bbr)
    ];
    let ecn = prop_oneof![3 => Just(Ecn::Off), 1 => Just(Ecn::Active), 1 => Just(Ecn::Accurate)];
    let sizes = (prop_oneof![Just(3000u32), Just(100_000)], prop_oneof![Just(0u16), Just(500)]);
    (algorithm, ecn, any::<[bool; 6]>(), sizes).prop_map(|(congestion, ecn, bits, sizes)| {
        let [timestamps, sack, quick_ack, pacing, window_scale, probing] = bits;
        Options {
            congestion,
            ecn,
            timestamps,
            sack,
            quick_ack,
            pacing: pacing && quick_ack,
            window_scale,
            path_probing: if probing { PathProbing::Always } else { PathProbing::Off },
            receive_buffer: sizes.0,
            mss: sizes.1,
            ..Options::default()
        }
    })
}

/// A scene as the generator has drawn it.
#[derive(Debug)]
struct Scene {
    options: [Options; 2],
    /// Side, call, and ns that pass then.
    calls: Vec<(usize, Call, u64)>,
    /// Of so many packets one is lost, one is held back, one is marked.
    fate: (u64, u64),
    /// Buffers that a sink has left, for each flush: all of them when the list is over.
    room: Vec<usize>,
}

/// What can be told from outside.
fn told(scene: &Scene, shortcuts: bool) -> (Vec<String>, Vec<(usize, Vec<u8>)>) {
    let mut link = Link::new();
    link.stacks.iter_mut().for_each(|stack| stack.shared.shortcuts = shortcuts);
    let (lost, late) = scene.fate;
    let [client, server] = &scene.options;
    let ids = link.connect(client, server);
    link.fate = Box::new(move |number, packet| match number {
        number if number % lost == 0 => None,
        number if number % late == 0 => Some(30 * MILLISECOND),
        number => {
            if number % late == 1 && packet[1] & 3 != 0 {
                // Congestion experienced.
                packet[1] |= 3;
                wire::ipv4::write_checksum(packet).unwrap();
            }
            Some(0)
        }
    });
    let (mut told, mut written, data) = (Vec::new(), [0, 0], pattern(1 << 20));
    let mut buffer = vec![0; 70_000];
    let mut rooms = scene.room.iter();
    for (side, call, pause) in &scene.calls {
        let (stack, id) = (&mut link.stacks[*side], ids[*side]);
        let rest = &data[written[*side]..];
        let change = |stack: &mut Stack<Rings>, change: &dyn Fn(&mut Options)| {
            let mut options = stack.options(id).unwrap().clone();
            change(&mut options);
            format!("{:?}", stack.set_options(id, options))
        };
        let mut write = |stack: &mut Stack<Rings>, count: usize, how: Write| {
            let taken = stack.send_with(id, &rest[..count], how);
            written[*side] += taken.unwrap_or(0);
            format!("{taken:?}")
        };
        told.push(match *call {
            Call::Send(count) => write(stack, count, Write::default()),
            Call::More(count) => write(stack, count, Write { more: true, ..Write::default() }),
            Call::Record(count) => {
                write(stack, count, Write { end_of_record: true, ..Write::default() })
            }
            Call::Read(count) => {
                let read = stack.recv(id, &mut buffer[..count]);
                format!("{read:?} {:?}", &buffer[..read.unwrap_or(0)])
            }
            Call::Cork(on) => change(stack, &|options| options.cork = on),
            Call::NoDelay(on) => change(stack, &|options| options.no_delay = on),
            Call::Shutdown => format!("{:?}", stack.shutdown(id)),
        });
        if *pause == 0 {
            // Nothing leaves before the next call.
            continue;
        }
        if let Some(room) = rooms.next() {
            link.flush_into(*room);
        }
        let until = link.now + pause;
        while link.step(until) {
            told.push(format!("{} {}", link.now, link.seen.len()));
        }
    }
    for side in [CLIENT, SERVER] {
        link.stacks[side].close(ids[side]);
        told.push(format!("{:?}", link.stacks[side].info(ids[side])));
    }
    link.run(300 * SECOND);
    for side in [CLIENT, SERVER] {
        told.push(format!("{:?}", link.events[side]));
        told.push(format!("{:?}", link.stacks[side].counters()));
    }
    (told, link.seen)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 384, ..ProptestConfig::default() })]
    #[test]
    fn a_shortcut_leads_to_the_same_place(
        options in [options(), options()],
        calls in proptest::collection::vec((0..2usize, call(), prop_oneof![
            1 => Just(0), 3 => 1..20 * MILLISECOND, 1 => 0..300 * MILLISECOND, 1 => 0..5 * SECOND
        ]), 1..60),
        fate in (2..40u64, 2..40u64),
        room in proptest::collection::vec(0..4usize, 0..20),
    ) {
        let scene = Scene { options, calls, fate, room };
        let (short, general) = (told(&scene, true), told(&scene, false));
        prop_assert_eq!(short.0, general.0);
        prop_assert!(short.1 == general.1);
    }
}

/// A burst that fills the window is acknowledged the general way; small messages that follow it are not.
#[test]
fn after_a_burst_messages_are_plain_again() {
    let options = Options { congestion: Algorithm::Cubic, ..Options::default() };
    let mut link = Link::new();
    let ids = link.connect(&options, &options);
    let is_limited = |link: &mut Link| {
        let (hot, _) = link.stacks[CLIENT].slab.get(ids[CLIENT]).unwrap();
        hot.has(flag::WINDOW_LIMITED)
    };
    link.stacks[CLIENT].send(ids[CLIENT], &pattern(20 * 1448)).unwrap();
    link.flush();
    assert!(is_limited(&mut link), "more is written than the initial window lets out");
    link.run(SECOND);
    for _ in 0..4 {
        link.stacks[CLIENT].send(ids[CLIENT], b"a message").unwrap();
        link.run(SECOND);
    }
    assert!(!is_limited(&mut link));
}
