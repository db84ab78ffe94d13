use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

#[test]
fn reads_a_syn_with_its_options() {
    let mut bytes =
        vec![0x30, 0x39, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0xa0, 2, 0xfa, 0xf0, 0, 0, 0, 0];
    bytes.extend([2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 1, 3, 3, 7]);
    let segment = Segment::parse(&bytes).unwrap();
    assert_eq!((segment.header.source_port(), segment.header.destination_port()), (12345, 80));
    assert_eq!((segment.header.sequence(), segment.header.window()), (1, 64240));
    assert_eq!(segment.header.flags(), Flags::SYN);
    assert!(!segment.header.flags().contains(Flags::SYN | Flags::ACK));
    let options: Vec<_> = segment.options().map(Result::unwrap).collect();
    assert_eq!(
        options,
        [
            Option::MaximumSegmentSize(1460),
            Option::SackPermitted,
            Option::Timestamps { value: 9, echo: 8 },
            Option::WindowScale(7),
        ]
    );
}

#[test]
fn the_bit_before_the_flags_is_accurate_ecn() {
    let fields = Fields {
        source_port: 1,
        destination_port: 2,
        sequence: 3,
        acknowledgment: 4,
        flags: Flags::ACK,
        window: 5,
    };
    let mut header = fields.header(12);
    assert!(!header.accurate_ecn());
    header.set_accurate_ecn(true);
    assert!(header.accurate_ecn());
    assert_eq!((header.header_length(), header.flags()), (32, Flags::ACK));
    header.set_accurate_ecn(false);
    assert_eq!(header, fields.header(12));
}

#[test]
fn reads_sack_blocks() {
    let bytes = [1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4];
    let options: Vec<_> = Options::new(&bytes).map(Result::unwrap).collect();
    let [Option::Sack(blocks)] = options[..] else { panic!("{options:?}") };
    assert_eq!(blocks.iter().collect::<Vec<_>>(), [(1, 2), (3, 4)]);
    let odd = [5, 9, 0, 0, 0, 0, 0, 0, 0];
    assert!(matches!(Options::new(&odd).next(), Some(Ok(Option::Other { kind: 5, .. }))));
}

#[test]
fn names_each_refusal() {
    let mut bytes = [0; 24];
    bytes[12] = 0x60;
    assert!(Segment::parse(&bytes).is_ok());
    assert_eq!(Segment::parse(&bytes[..19]), Err(Malformed::Truncated));
    assert_eq!(Segment::parse(&bytes[..23]), Err(Malformed::DataOffset));
    bytes[12] = 0x40;
    assert_eq!(Segment::parse(&bytes), Err(Malformed::DataOffset));
    for length in [0, 1, 4] {
        let bytes = [1, 3, length, 7];
        let found: Vec<_> = Options::new(&bytes).collect();
        assert_eq!(found, [Err(OptionError { kind: 3 })], "length {length}");
    }
}

proptest! {
    #[test]
    fn fields_round_trip(ports: (u16, u16), numbers: (u32, u32), flags: u8, window: u16, words in 0..11usize, data in vec(any::<u8>(), 0..30)) {
        let fields = Fields {
            source_port: ports.0,
            destination_port: ports.1,
            sequence: numbers.0,
            acknowledgment: numbers.1,
            flags: Flags(flags),
            window,
        };
        let options = vec![1; words * 4];
        let mut header = fields.header(options.len());
        let sum = Sum::new().bytes(header.as_bytes()).bytes(&options).bytes(&data);
        header.set_checksum(sum.finish());
        let bytes = [header.as_bytes(), &options, &data].concat();
        let segment = Segment::parse(&bytes).unwrap();
        prop_assert_eq!((segment.options, segment.data), (&options[..], &data[..]));
        prop_assert!(segment.is_intact(Sum::new()) && !segment.is_intact(Sum::new().u16(1)));
        let found = segment.header;
        let back = Fields {
            source_port: found.source_port(),
            destination_port: found.destination_port(),
            sequence: found.sequence(),
            acknowledgment: found.acknowledgment(),
            flags: found.flags(),
            window: found.window(),
        };
        prop_assert_eq!(back, fields);
    }

    #[test]
    fn a_limited_segment_size_is_what_a_new_header_would_say(
        size: u16,
        most: u16,
        before in 0..4usize,
        syn: bool,
        data in vec(any::<u8>(), 0..9),
    ) {
        let fields = Fields {
            source_port: 1,
            destination_port: 2,
            sequence: 3,
            acknowledgment: 4,
            flags: if syn { Flags::SYN | Flags::ACK } else { Flags::ACK },
            window: 5,
        };
        let written = |size: u16| {
            let mut options = vec![1; 8];
            options[before..before + 2].copy_from_slice(&[2, 4]);
            options[before + 2..before + 4].copy_from_slice(&size.to_be_bytes());
            let mut header = fields.header(options.len());
            header.set_checksum(Sum::new().bytes(header.as_bytes()).bytes(&options).bytes(&data).finish());
            [header.as_bytes(), &options, &data].concat()
        };
        let mut segment = written(size);
        let changed = limit_segment_size(&mut segment, most);
        prop_assert_eq!(changed, syn && size > most);
        prop_assert_eq!(segment, written(if changed { most } else { size }));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..80)) {
        if let Ok(segment) = Segment::parse(&bytes) {
            prop_assert_eq!(20 + segment.options.len() + segment.data.len(), bytes.len());
            prop_assert!(segment.options().count() <= MAX_OPTIONS_LENGTH);
        }
        let mut limited = bytes.clone();
        if !limit_segment_size(&mut limited, 1000) {
            prop_assert_eq!(&limited, &bytes);
        }
        for option in Options::new(&bytes).filter_map(Result::ok) {
            if let Option::Sack(blocks) = option {
                prop_assert!((1..=4).contains(&blocks.iter().count()));
            }
        }
    }
}
