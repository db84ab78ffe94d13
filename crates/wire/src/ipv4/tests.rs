use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// UDP from 192.168.0.1 to 192.168.0.199, TTL 64, DF, 115 bytes: its checksum is widely known.
const KNOWN: [u8; 20] = [
    0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7,
];

fn known() -> Vec<u8> {
    let mut packet = KNOWN.to_vec();
    packet.resize(115, 0);
    packet
}

#[test]
fn reads_a_known_header() {
    let packet = known();
    let header = Header::parse(&packet).unwrap();
    assert_eq!(header.source(), Ipv4Addr::new(192, 168, 0, 1));
    assert_eq!(header.destination(), Ipv4Addr::new(192, 168, 0, 199));
    assert_eq!((header.ttl(), header.protocol(), header.total_length()), (64, Protocol::UDP, 115));
    assert!(header.dont_fragment() && !header.more_fragments() && !header.is_fragment());
    assert_eq!((header.checksum(), header.header_length()), (0xb861, 20));
}

#[test]
fn names_each_refusal() {
    let with = |at: usize, value: u8| {
        let mut packet = known();
        packet[at] = value;
        Header::parse(&packet).map(|_| ())
    };
    assert_eq!(Header::parse(&KNOWN[..19]), Err(Malformed::Truncated));
    assert_eq!(with(0, 0x65), Err(Malformed::Version));
    assert_eq!(with(0, 0x44), Err(Malformed::HeaderLength));
    assert_eq!(Header::parse(&[0x46; 20]), Err(Malformed::HeaderLength));
    assert_eq!(with(3, 19), Err(Malformed::TotalLength));
    assert_eq!(with(3, 116), Err(Malformed::TotalLength));
    assert_eq!(with(0, 0x4f).unwrap_err(), Malformed::Checksum);
    assert_eq!(with(19, 0), Err(Malformed::Checksum));
    assert_eq!(Header::parse(&KNOWN), Err(Malformed::TotalLength));
}

#[test]
fn the_total_length_covers_the_options() {
    let mut packet = [1; 60];
    packet[0] = 0x4f;
    for (total, expected) in
        [(59, Err(Malformed::TotalLength)), (60, Ok(())), (61, Err(Malformed::TotalLength))]
    {
        packet[2..4].copy_from_slice(&[0, total]);
        write_checksum(&mut packet).unwrap();
        assert_eq!(Header::parse(&packet).map(|_| ()), expected, "total length {total}");
    }
}

#[test]
fn a_scattered_packet_counts_whole() {
    assert!(Header::parse_within(&KNOWN, 115).is_ok());
    assert_eq!(Header::parse_within(&KNOWN, 114), Err(Malformed::TotalLength));
    let mut options = KNOWN;
    options[0] = 0x46;
    assert_eq!(Header::parse_within(&options, 115), Err(Malformed::HeaderLength));
}

#[test]
fn the_last_hop_is_not_taken() {
    for ttl in [0, 1] {
        let mut packet = known();
        packet[8] = ttl;
        write_checksum(&mut packet).unwrap();
        let before = packet.clone();
        assert_eq!(forward_in_place(&mut packet), Err(NotForwarded::TtlExpired(TtlExpired)));
        assert_eq!(packet, before);
    }
}

#[test]
fn walks_options() {
    let mut packet = vec![0; 40];
    packet[0] = 0x48;
    // No operation, router alert (RFC 2113), loose source route, end, then bytes never read.
    packet[20..32].copy_from_slice(&[1, 148, 4, 0, 0, 131, 3, 4, 0, 131, 0, 0]);
    let options: Vec<_> = Options::new(&packet).map(Result::unwrap).collect();
    assert_eq!(options[0], Option { kind: 148, data: &[0, 0] });
    assert!(options[1].is_source_route() && options[1].is_copied());
    assert_eq!(options.len(), 2);

    packet[21] = 7;
    for length in [0, 1, 12] {
        packet[22] = length;
        let found: Vec<_> = Options::new(&packet).collect();
        assert_eq!(found, [Err(OptionError { at: 21 })], "length {length}");
    }
}

#[test]
fn every_checksum_survives_the_decrement() {
    // All values that a checksum can have but 0xffff, which no header sums to.
    for identification in (0..=0xffff).step_by(if cfg!(miri) { 257 } else { 1 }) {
        let fields = Fields {
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 2),
            protocol: Protocol::UDP,
            ttl: 2,
            service: 0,
            identification,
            dont_fragment: false,
        };
        let mut header = fields.header(20);
        decrement_ttl(&mut header).unwrap();
        assert_eq!(header, Fields { ttl: 1, ..fields }.header(20));
    }
}

proptest! {
    /// What the short way lets pass, the long way lets pass too, and it is as the short way says.
    #[test]
    fn plain_packets_are_right_and_plain(
        mut bytes: [u8; 20], version in prop_oneof![Just(0x45u8), any::<u8>()],
        length in prop_oneof![20..200u16, any::<u16>()], present in prop_oneof![20..200usize, 0..70_000usize],
        right in any::<bool>(),
    ) {
        bytes[0] = version;
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        let mut packet = bytes.to_vec();
        packet.resize(present.max(20), 0);
        if right && write_checksum(&mut packet).is_ok() {
            bytes.copy_from_slice(&packet[..20]);
        }
        let whole = Header::parse_within(&packet, present);
        let exact = whole.is_ok_and(|header| {
            !header.has_options() && usize::from(header.total_length()) == present
        });
        prop_assert_eq!(Header::of_plain(&bytes, present).is_some(), exact);
    }

    #[test]
    fn fields_round_trip(s: [u8; 4], d: [u8; 4], protocol: u8, ttl: u8, service: u8, identification: u16, df: bool, extra in 0..64u16) {
        let fields = Fields {
            source: s.into(),
            destination: d.into(),
            protocol: Protocol(protocol),
            ttl,
            service,
            identification,
            dont_fragment: df,
        };
        let header = fields.header(20 + extra);
        let mut packet = header.as_bytes().to_vec();
        packet.resize(20 + usize::from(extra), 7);
        let parsed = Header::parse(&packet).unwrap();
        prop_assert_eq!(parsed, &header);
        let back = Fields {
            source: parsed.source(),
            destination: parsed.destination(),
            protocol: parsed.protocol(),
            ttl: parsed.ttl(),
            service: parsed.dscp() << 2 | parsed.ecn(),
            identification: parsed.identification(),
            dont_fragment: parsed.dont_fragment(),
        };
        prop_assert_eq!(back, fields);
    }

    #[test]
    fn forwarding_equals_a_new_checksum(mut header: [u8; 20], words in 5..16u8, ttl in 2..=255u8, tail in vec(any::<u8>(), 40)) {
        header[0] = 0x40 | words;
        let mut packet = [&header[..], &tail].concat();
        let total = packet.len() as u16;
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        packet[8] = ttl;
        write_checksum(&mut packet).unwrap();
        let mut expected = packet.clone();
        expected[8] = ttl - 1;
        write_checksum(&mut expected).unwrap();
        forward_in_place(&mut packet).unwrap();
        prop_assert_eq!(packet, expected);
    }

    #[test]
    fn fragment_fields_round_trip(df: bool, more: bool, offset in 0..0x2000u16) {
        let mut packet = known();
        Header::peek_mut(&mut packet).unwrap().set_fragment(df, more, offset);
        write_checksum(&mut packet).unwrap();
        let header = Header::parse(&packet).unwrap();
        prop_assert_eq!((header.dont_fragment(), header.more_fragments(), header.fragment_offset()), (df, more, offset));
        prop_assert_eq!(header.is_fragment(), more || offset != 0);
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in vec(any::<u8>(), 0..80), four: bool) {
        if let (true, Some(first)) = (four, bytes.first_mut()) {
            *first = 0x40 | (*first & 0xf);
        }
        prop_assert!(Options::new(&bytes).count() <= 20);
        let _ = write_checksum(&mut bytes);
        if let Ok(header) = Header::parse(&bytes) {
            prop_assert!(usize::from(header.total_length()) <= bytes.len());
            prop_assert!(header.header_length() <= usize::from(header.total_length()));
        }
        let _ = forward_in_place(&mut bytes);
    }
}
