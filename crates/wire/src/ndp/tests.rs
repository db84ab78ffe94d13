use super::*;
use crate::ethernet::MacAddr;
use proptest::collection::vec;
use proptest::prelude::*;

fn addr(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// A message of this type: 4 bytes of fields, then the body.
fn bytes(kind: u8, rest: [u8; 4], body: &[&[u8]]) -> Vec<u8> {
    [&[kind, 0, 0, 0][..], &rest, &body.concat()].concat()
}

const MAC_OPTION: [u8; 8] = [1, 1, 2, 0, 0, 0, 0, 1];

fn solicitation(target: &str, options: &[u8]) -> Vec<u8> {
    bytes(kind::NEIGHBOR_SOLICITATION, [0; 4], &[&addr(target).octets(), options])
}

#[test]
fn reads_a_neighbor_solicitation() {
    let message = solicitation("fe80::2", &MAC_OPTION);
    let found = parse(&message, addr("fe80::1"), addr("ff02::1:ff00:2"), 255).unwrap();
    let Message::NeighborSolicitation { target, options } = found else { panic!("{found:?}") };
    assert_eq!(target, addr("fe80::2"));
    assert_eq!(options.source_link_layer(), Some(MacAddr::new([2, 0, 0, 0, 0, 1])));
    assert_eq!(options.target_link_layer(), None);
}

#[test]
fn checks_neighbor_solicitations() {
    let check = |message: &[u8], source: &str, destination: &str, hop_limit| {
        parse(message, addr(source), addr(destination), hop_limit).err()
    };
    let plain = solicitation("fe80::2", &[]);
    assert_eq!(check(&plain, "fe80::1", "fe80::2", 254), Some(Malformed::HopLimit));
    assert_eq!(check(&plain[..23], "fe80::1", "fe80::2", 255), Some(Malformed::Truncated));
    assert_eq!(check(&plain[..7], "fe80::1", "fe80::2", 255), Some(Malformed::Truncated));
    assert_eq!(check(&plain, "ff02::1", "fe80::2", 255), Some(Malformed::Source));
    // Duplicate address detection: from ::, to the solicited-node address, without an option.
    assert_eq!(check(&plain, "::", "ff02::1:ff00:2", 255), None);
    assert_eq!(check(&plain, "::", "fe80::2", 255), Some(Malformed::Destination));
    let named = solicitation("fe80::2", &MAC_OPTION);
    assert_eq!(check(&named, "::", "ff02::1:ff00:2", 255), Some(Malformed::OptionNotAllowed));
    let group = solicitation("ff02::2", &[]);
    assert_eq!(check(&group, "fe80::1", "fe80::2", 255), Some(Malformed::Target));
    let mut code = plain.clone();
    code[1] = 1;
    assert_eq!(check(&code, "fe80::1", "fe80::2", 255), Some(Malformed::Code));
    for kind in [132, 138] {
        code[0] = kind;
        assert_eq!(check(&code, "fe80::1", "fe80::2", 255), Some(Malformed::Kind));
    }
    for option in [&[1, 0, 0, 0, 0, 0, 0, 0][..], &[1, 2, 0, 0, 0, 0, 0, 0], &[1]] {
        let bad = solicitation("fe80::2", option);
        assert_eq!(check(&bad, "fe80::1", "fe80::2", 255), Some(Malformed::OptionLength));
    }
}

#[test]
fn checks_neighbor_advertisements() {
    let target = addr("2001:db8::2").octets();
    let message =
        bytes(kind::NEIGHBOR_ADVERTISEMENT, [0xe0, 0, 0, 0], &[&target, &[2, 1, 2, 0, 0, 0, 0, 9]]);
    let found = parse(&message, addr("fe80::1"), addr("fe80::2"), 255).unwrap();
    let Message::NeighborAdvertisement { flags, target, options } = found else {
        panic!("{found:?}")
    };
    assert_eq!(flags, Flags { router: true, solicited: true, override_known: true });
    assert_eq!(target, addr("2001:db8::2"));
    assert_eq!(options.target_link_layer(), Some(MacAddr::new([2, 0, 0, 0, 0, 9])));
    let refusal = parse(&message, addr("fe80::1"), addr("ff02::1"), 255);
    assert_eq!(refusal, Err(Malformed::Destination));
}

#[test]
fn checks_router_messages() {
    let message = bytes(kind::ROUTER_SOLICITATION, [0; 4], &[&MAC_OPTION]);
    assert!(parse(&message, addr("fe80::1"), addr("ff02::2"), 255).is_ok());
    let refusal = parse(&message, addr("::"), addr("ff02::2"), 255);
    assert_eq!(refusal, Err(Malformed::OptionNotAllowed));

    let mut prefix = vec![3, 4, 64, 0xc0, 0, 0, 0, 9, 0, 0, 0, 8, 0, 0, 0, 0];
    prefix.extend(addr("2001:db8::").octets());
    let mtu = [5, 1, 0, 0, 0, 0, 5, 0xdc];
    let body: [&[u8]; 3] = [&[0, 0, 0, 1, 0, 0, 0, 2], &prefix, &mtu];
    let message = bytes(kind::ROUTER_ADVERTISEMENT, [64, 0x80, 7, 8], &body);
    let found = parse(&message, addr("fe80::1"), addr("ff02::1"), 255).unwrap();
    let Message::RouterAdvertisement { router, options } = found else { panic!("{found:?}") };
    let expected = Router {
        hop_limit: 64,
        managed: true,
        other: false,
        lifetime: 0x708,
        reachable_time: 1,
        retransmit_timer: 2,
    };
    assert_eq!(router, expected);
    let prefix = PrefixInformation {
        prefix: addr("2001:db8::"),
        length: 64,
        on_link: true,
        autonomous: true,
        valid_lifetime: 9,
        preferred_lifetime: 8,
    };
    assert_eq!(options.collect::<Vec<_>>(), [Option::Prefix(prefix), Option::Mtu(1500)]);
    let refusal = parse(&message, addr("2001:db8::1"), addr("ff02::1"), 255);
    assert_eq!(refusal, Err(Malformed::Source));
    let refusal = parse(&message[..12], addr("fe80::1"), addr("ff02::1"), 255);
    assert_eq!(refusal, Err(Malformed::Truncated));
}

#[test]
fn checks_redirects() {
    let check = |source: &str, target: &str, destination: &str| {
        let (t, d) = (addr(target).octets(), addr(destination).octets());
        let quoted = [4, 2, 0, 0, 0, 0, 0, 0, 0x60, 1, 2, 3, 4, 5, 6, 7];
        let message = bytes(kind::REDIRECT, [0; 4], &[&t, &d, &quoted]);
        match parse(&message, addr(source), addr("fe80::9"), 255)? {
            Message::Redirect { mut options, .. } => {
                let packet = [0x60, 1, 2, 3, 4, 5, 6, 7];
                assert_eq!(options.next(), Some(Option::RedirectedHeader(&packet)));
                Ok(())
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(check("fe80::1", "fe80::2", "2001:db8::1"), Ok(()));
    assert_eq!(check("fe80::1", "2001:db8::1", "2001:db8::1"), Ok(()));
    assert_eq!(check("2001:db8::9", "fe80::2", "2001:db8::1"), Err(Malformed::Source));
    assert_eq!(check("fe80::1", "2001:db8::2", "2001:db8::1"), Err(Malformed::Target));
    assert_eq!(check("fe80::1", "fe80::2", "ff02::1"), Err(Malformed::Destination));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(mut message in vec(prop_oneof![0..6u8, any::<u8>()], 0..120), kind in 133..138u8, source in prop_oneof![Just("fe80::1"), Just("::"), Just("2001:db8::1")]) {
        if let [first, code, ..] = &mut message[..] {
            (*first, *code) = (kind, 0);
        }
        let checked = parse(&message, addr(source), addr("fe80::2"), 255);
        if let Ok(
            Message::RouterSolicitation { options }
            | Message::RouterAdvertisement { options, .. }
            | Message::NeighborSolicitation { options, .. }
            | Message::NeighborAdvertisement { options, .. }
            | Message::Redirect { options, .. },
        ) = checked
        {
            prop_assert!(options.count() <= message.len() / 8);
        }
    }
}
