use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn messages() -> impl Strategy<Value = Message> {
    prop_oneof![
        any::<u8>().prop_map(|code| Message::Unreachable { code }),
        any::<u32>().prop_map(|mtu| Message::PacketTooBig { mtu }),
        any::<u8>().prop_map(|code| Message::TimeExceeded { code }),
        any::<(u8, u32)>().prop_map(|(code, pointer)| Message::ParameterProblem { code, pointer }),
        any::<(u16, u16)>()
            .prop_map(|(identifier, sequence)| Message::EchoRequest { identifier, sequence }),
        any::<(u16, u16)>()
            .prop_map(|(identifier, sequence)| Message::EchoReply { identifier, sequence }),
        (130..=255u8, any::<u8>(), any::<u32>()).prop_map(|(kind, code, rest)| Message::Other {
            kind,
            code,
            rest
        }),
    ]
}

#[test]
fn the_checksum_covers_the_addresses() {
    let (a, b) = ("fe80::1".parse().unwrap(), "ff02::1".parse().unwrap());
    let mut bytes = Header::new(&Message::PacketTooBig { mtu: 1280 }).as_bytes().to_vec();
    write_checksum(&mut bytes, a, b).unwrap();
    let (header, _) = Header::parse(&bytes, a, b).unwrap();
    assert_eq!(header.message(), Message::PacketTooBig { mtu: 1280 });
    assert_eq!(Header::parse(&bytes, a, a), Err(Malformed::Checksum));
    assert_eq!(Header::parse(&bytes[..7], a, b), Err(Malformed::Truncated));
}

#[test]
fn tells_errors_and_neighbor_discovery() {
    assert!(Message::Unreachable { code: 0 }.is_error());
    assert!(Message::Other { kind: 100, code: 0, rest: 0 }.is_error());
    let solicitation = Message::Other { kind: 135, code: 0, rest: 0 };
    assert!(!solicitation.is_error() && solicitation.is_neighbor_discovery());
    assert!(!Message::EchoRequest { identifier: 0, sequence: 0 }.is_neighbor_discovery());
}

proptest! {
    #[test]
    fn messages_round_trip(message in messages(), s: u128, d: u128, data in vec(any::<u8>(), 0..40)) {
        let (s, d) = (Ipv6Addr::from_bits(s), Ipv6Addr::from_bits(d));
        let mut bytes = [Header::new(&message).as_bytes(), &data].concat();
        write_checksum(&mut bytes, s, d).unwrap();
        let (header, rest) = Header::parse(&bytes, s, d).unwrap();
        prop_assert_eq!((header.message(), rest), (message, &data[..]));
    }

    #[test]
    fn replies_carry_a_right_checksum(identifier: u16, sequence: u16, s: u128, d: u128, data in vec(any::<u8>(), 0..40)) {
        let (s, d) = (Ipv6Addr::from_bits(s), Ipv6Addr::from_bits(d));
        let request = Message::EchoRequest { identifier, sequence };
        let mut bytes = [Header::new(&request).as_bytes(), &data].concat();
        write_checksum(&mut bytes, s, d).unwrap();
        echo_reply_in_place(&mut bytes).unwrap();
        let (header, _) = Header::parse(&bytes, d, s).unwrap();
        prop_assert_eq!(header.message(), Message::EchoReply { identifier, sequence });
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in vec(any::<u8>(), 0..40)) {
        let any = Ipv6Addr::UNSPECIFIED;
        let written = write_checksum(&mut bytes, any, any).is_ok();
        prop_assert_eq!(written, bytes.len() >= HEADER_LENGTH);
        if let Ok((header, _)) = Header::parse(&bytes, any, any) {
            let _ = header.message().is_error();
        }
        let _ = echo_reply_in_place(&mut bytes);
    }
}
