use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn fields(next_header: Protocol) -> Fields {
    Fields {
        source: "2001:db8::1".parse().unwrap(),
        destination: "2001:db8::2".parse().unwrap(),
        next_header,
        hop_limit: 64,
        traffic_class: 0,
        flow_label: 0,
    }
}

fn packet(next_header: Protocol, payload: &[u8]) -> Vec<u8> {
    let header = fields(next_header).header(payload.len() as u16);
    [header.as_bytes(), payload].concat()
}

#[test]
fn reads_a_known_header() {
    let mut bytes = vec![0x6a, 0xb1, 0x23, 0x45, 0, 1, 58, 255];
    bytes.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    bytes.extend([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    bytes.push(9);
    let header = Header::parse(&bytes).unwrap();
    assert_eq!((header.dscp(), header.ecn(), header.flow_label()), (0x2a, 3, 0x12345));
    assert_eq!((header.payload_length(), header.total_length()), (1, 41));
    assert_eq!((header.next_header(), header.hop_limit()), (Protocol::ICMPV6, 255));
    assert_eq!(header.source().to_string(), "fe80::1");
    assert_eq!(header.destination().to_string(), "ff02::2");
}

#[test]
fn names_each_refusal() {
    let good = packet(Protocol::UDP, &[0; 8]);
    assert_eq!(Header::parse(&good[..39]), Err(Malformed::Truncated));
    assert_eq!(Header::parse(&good[..47]), Err(Malformed::PayloadLength));
    let mut bad = good.clone();
    bad[0] = 0x45;
    assert_eq!(Header::parse(&bad), Err(Malformed::Version));
    let mut last = good;
    for hop_limit in [0, 1] {
        last[7] = hop_limit;
        let refusal = NotForwarded::HopLimitExceeded(HopLimitExceeded);
        assert_eq!(forward_in_place(&mut last), Err(refusal));
        assert_eq!(last[7], hop_limit);
    }
    last[7] = 2;
    assert_eq!(forward_in_place(&mut last).unwrap().hop_limit(), 1);
}

#[test]
fn a_scattered_packet_counts_whole() {
    let whole = packet(Protocol::UDP, &[0; 8]);
    assert!(Header::parse_within(&whole[..40], 48).is_ok());
    assert_eq!(Header::parse_within(&whole[..40], 47), Err(Malformed::PayloadLength));
}

#[test]
fn walks_a_chain() {
    // Hop-by-hop (8), routing (16), first fragment (8), destination options (8), UDP.
    let mut payload = vec![43, 0, 5, 2, 0, 0, 1, 0];
    payload.extend([44, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    payload.extend([60, 0, 0, 1, 0xde, 0xad, 0xbe, 0xef]);
    payload.extend([17, 0, 1, 4, 0, 0, 0, 0]);
    payload.extend([0; 8]);
    let upper = upper_layer(&packet(Protocol::HOP_BY_HOP, &payload)).unwrap();
    assert_eq!((upper.protocol, upper.offset, upper.named_at), (Protocol::UDP, 80, 72));
    let fragment = Fragment {
        offset: 0,
        more: true,
        identification: 0xdead_beef,
        header_at: 64,
        named_at: 48,
        next_header: Protocol::DESTINATION_OPTIONS,
    };
    assert_eq!(upper.fragment, Some(fragment));
    assert_eq!(fragment.header()[..], payload[24..32]);
    assert!(!upper.is_later_fragment() && !fragment.is_whole());
    assert!(Fragment { more: false, ..fragment }.is_whole());
}

#[test]
fn stops_at_a_later_fragment() {
    // What would be destination options is payload.
    let upper = upper_layer(&packet(Protocol::FRAGMENT, &[60, 0, 0, 8, 0, 0, 0, 1])).unwrap();
    assert!(upper.is_later_fragment());
    assert_eq!((upper.protocol, upper.offset), (Protocol::DESTINATION_OPTIONS, 48));
}

#[test]
fn authentication_counts_in_words() {
    let mut payload = vec![0; 24];
    (payload[0], payload[1]) = (6, 4);
    let upper = upper_layer(&packet(Protocol::AUTHENTICATION, &payload)).unwrap();
    assert_eq!((upper.protocol, upper.offset), (Protocol::TCP, 64));
}

#[test]
fn bounds_the_chain() {
    let options = |count: usize| {
        let mut payload = [60, 0, 1, 4, 0, 0, 0, 0].repeat(count);
        let last = payload.len() - 8;
        payload[last] = 59;
        upper_layer(&packet(Protocol::DESTINATION_OPTIONS, &payload))
    };
    assert_eq!(options(MAX_EXTENSIONS).map(|upper| upper.offset), Ok(40 + 8 * MAX_EXTENSIONS));
    assert_eq!(options(MAX_EXTENSIONS + 1), Err(ChainError::TooMany));

    let mut long = vec![0; 1032];
    (long[0], long[1]) = (17, 128);
    let whole = packet(Protocol::DESTINATION_OPTIONS, &long);
    assert_eq!(upper_layer(&whole), Err(ChainError::TooLong));
    let cut = packet(Protocol::DESTINATION_OPTIONS, &long[..1024]);
    assert_eq!(upper_layer(&cut), Err(ChainError::Truncated));
    let cut = packet(Protocol::DESTINATION_OPTIONS, &[17]);
    assert_eq!(upper_layer(&cut), Err(ChainError::Truncated));

    let late = [0, 0, 1, 4, 0, 0, 0, 0].repeat(2);
    let late = packet(Protocol::DESTINATION_OPTIONS, &late);
    assert_eq!(upper_layer(&late), Err(ChainError::Order));
}

#[test]
fn the_walk_ignores_padding_behind_the_payload() {
    let mut bytes = packet(Protocol::DESTINATION_OPTIONS, &[17, 0, 1, 4]);
    bytes.extend([0; 20]);
    assert_eq!(upper_layer(&bytes), Err(ChainError::Truncated));
}

#[test]
fn makes_solicited_node_addresses() {
    // The example of RFC 4291 2.7.1.
    let address = "4037::01:800:200e:8c6c".parse().unwrap();
    assert_eq!(solicited_node(address).to_string(), "ff02::1:ff0e:8c6c");
}

/// Bytes of a chain of headers. Miri takes minutes to make up more.
const LONGEST: usize = if cfg!(miri) { 60 } else { 2000 };

proptest! {
    /// What the short way lets pass, the long way lets pass too, and it is as the short way says.
    #[test]
    fn plain_packets_are_right_and_plain(
        mut bytes: [u8; 40], first in prop_oneof![Just(0x60u8), any::<u8>()],
        length in prop_oneof![0..100u16, any::<u16>()], present in prop_oneof![40..140usize, 0..70_000usize],
    ) {
        bytes[0] = first;
        bytes[4..6].copy_from_slice(&length.to_be_bytes());
        let exact = Header::parse_within(&bytes, present)
            .is_ok_and(|header| header.total_length() == present);
        prop_assert_eq!(Header::of_plain(&bytes, present).is_some(), exact);
    }

    #[test]
    fn fields_round_trip(s: u128, d: u128, next: u8, hop_limit: u8, traffic_class: u8, flow_label in 0..0x10_0000u32, n in 0..64u16) {
        let fields = Fields {
            source: Ipv6Addr::from_bits(s),
            destination: Ipv6Addr::from_bits(d),
            next_header: Protocol(next),
            hop_limit,
            traffic_class,
            flow_label,
        };
        let header = fields.header(n);
        let bytes = [header.as_bytes(), &vec![1; usize::from(n)]].concat();
        let parsed = Header::parse(&bytes).unwrap();
        prop_assert_eq!(parsed.payload_length(), n);
        let back = Fields {
            source: parsed.source(),
            destination: parsed.destination(),
            next_header: parsed.next_header(),
            hop_limit: parsed.hop_limit(),
            traffic_class: parsed.dscp() << 2 | parsed.ecn(),
            flow_label: parsed.flow_label(),
        };
        prop_assert_eq!(back, fields);
    }

    #[test]
    fn arbitrary_chains_stay_in_bounds(first in prop_oneof![Just(0u8), Just(43), Just(44), Just(51), Just(60), Just(135)], payload in vec(prop_oneof![Just(0u8), Just(60), Just(44), any::<u8>()], 0..LONGEST)) {
        let bytes = packet(Protocol(first), &payload);
        if let Ok(upper) = upper_layer(&bytes) {
            prop_assert!(upper.offset <= bytes.len());
            prop_assert!(upper.offset <= HEADER_LENGTH + MAX_EXTENSION_BYTES);
            prop_assert_eq!(bytes[upper.named_at], upper.protocol.0);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in vec(any::<u8>(), 0..120), six: bool) {
        if let (true, Some(first)) = (six, bytes.first_mut()) {
            *first = 0x60;
        }
        let _ = upper_layer(&bytes);
        let fits = Header::parse(&bytes).map(Header::total_length);
        prop_assert!(fits.is_err() || fits.is_ok_and(|length| length <= bytes.len()));
        let _ = forward_in_place(&mut bytes);
    }
}
