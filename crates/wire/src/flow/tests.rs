use super::toeplitz::{MICROSOFT_KEY, SYMMETRIC_KEY};
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn v4(source: (&str, u16), destination: (&str, u16)) -> FiveTuple4 {
    let address = |text: &str| text.parse().unwrap();
    let (source, destination) =
        ((address(source.0), source.1), (address(destination.0), destination.1));
    FiveTuple4::new(source, destination, Protocol::TCP)
}

fn v6(source: (&str, u16), destination: (&str, u16)) -> FiveTuple6 {
    let address = |text: &str| text.parse().unwrap();
    let (source, destination) =
        ((address(source.0), source.1), (address(destination.0), destination.1));
    FiveTuple6::new(source, destination, Protocol::TCP)
}

#[test]
fn rss_equals_the_specification() {
    let cases = [
        (("66.9.149.187", 2794), ("161.142.100.80", 1766), 0x323e_8fc2, 0x51cc_c178),
        (("199.92.111.2", 14230), ("65.69.140.83", 4739), 0xd718_262a, 0xc626_b0ea),
        (("24.19.198.95", 12898), ("12.22.207.184", 38024), 0xd2d0_a5de, 0x5c2b_394a),
        (("38.27.205.30", 48228), ("209.142.163.6", 2217), 0x8298_9176, 0xafc7_327f),
        (("153.39.163.191", 44251), ("202.188.127.2", 1303), 0x5d18_09c5, 0x10e8_28a2),
    ];
    for (s, d, addresses, ports) in cases {
        assert_eq!(v4(s, d).rss(&MICROSOFT_KEY), ports, "{s:?}");
        assert_eq!(v4((s.0, 0), (d.0, 0)).rss(&MICROSOFT_KEY), addresses, "{s:?}");
    }
    let cases = [
        (("3ffe:2501:200:1fff::7", 2794), ("3ffe:2501:200:3::1", 1766), 0x2cc1_8cd5, 0x4020_7d3d),
        (("3ffe:501:8::260:97ff:fe40:efab", 14230), ("ff02::1", 4739), 0x0f0c_461c, 0xdde5_1bbf),
        (
            ("3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251),
            ("fe80::200:f8ff:fe21:67cf", 38024),
            0x4b61_e985,
            0x02d1_feef,
        ),
    ];
    for (s, d, addresses, ports) in cases {
        assert_eq!(v6(s, d).rss(&MICROSOFT_KEY), ports, "{s:?}");
        assert_eq!(v6((s.0, 0), (d.0, 0)).rss(&MICROSOFT_KEY), addresses, "{s:?}");
    }
}

#[test]
fn keys_have_the_documented_layout() {
    let key = v4(("1.2.3.4", 0x0506), ("7.8.9.10", 0x0b0c)).key();
    assert_eq!(key, [1, 2, 3, 4, 7, 8, 9, 10, 5, 6, 11, 12, 6, 0, 0, 0]);
    let key = v6(("102::", 0x0506), ("708::", 0x0b0c)).key();
    assert_eq!((&key[..2], &key[16..18]), (&[1, 2][..], &[7, 8][..]));
    assert_eq!(key[32..], [5, 6, 11, 12, 6, 0, 0, 0]);
}

/// An IPv4 UDP packet from port 1 to port 2 with these flags and fragment offset.
fn packet4(fragment: (bool, u16)) -> Vec<u8> {
    let fields = ipv4::Fields {
        source: Ipv4Addr::new(10, 0, 0, 1),
        destination: Ipv4Addr::new(10, 0, 0, 2),
        protocol: Protocol::UDP,
        ttl: 64,
        service: 0,
        identification: 0,
        dont_fragment: false,
    };
    let mut header = fields.header(28);
    header.set_fragment(false, fragment.0, fragment.1);
    [header.as_bytes(), &[0, 1, 0, 2, 0, 8, 0, 0]].concat()
}

/// An IPv6 packet from port 1 to port 2 behind these extension headers.
fn packet6(next: u8, extensions: &[u8]) -> Vec<u8> {
    let fields = ipv6::Fields {
        source: Ipv6Addr::LOCALHOST,
        destination: Ipv6Addr::LOCALHOST,
        next_header: Protocol(next),
        hop_limit: 64,
        traffic_class: 0,
        flow_label: 0,
    };
    let header = fields.header(8 + extensions.len() as u16);
    [header.as_bytes(), extensions, &[0, 1, 0, 2, 0, 8, 0, 0]].concat()
}

fn seen(packet: &[u8]) -> (u16, u16, Protocol) {
    match FiveTuple::of(packet).unwrap() {
        FiveTuple::V4(flow) => (flow.source_port(), flow.destination_port(), flow.protocol()),
        FiveTuple::V6(flow) => (flow.source_port(), flow.destination_port(), flow.protocol()),
    }
}

#[test]
fn finds_ports_where_they_are() {
    assert_eq!(seen(&packet4((false, 0))), (1, 2, Protocol::UDP));
    assert_eq!(seen(&packet4((false, 0))[..23]), (0, 0, Protocol::UDP));
    assert_eq!(seen(&packet6(17, &[])), (1, 2, Protocol::UDP));
    assert_eq!(seen(&packet6(132, &[])), (1, 2, Protocol::SCTP));
    assert_eq!(seen(&packet6(136, &[])), (1, 2, Protocol::UDP_LITE));
    assert_eq!(seen(&packet6(60, &[17, 0, 1, 4, 0, 0, 0, 0])), (1, 2, Protocol::UDP));
    assert_eq!(seen(&packet6(58, &[])), (0, 0, Protocol::ICMPV6));
    assert_eq!(seen(&packet6(60, &[17, 9])), (0, 0, Protocol::DESTINATION_OPTIONS));
    assert_eq!(FiveTuple::of(&[]), None);
    assert_eq!(FiveTuple::of(&[0x45; 19]), None);
    assert_eq!(FiveTuple::of(&[0x55; 60]), None);
}

#[test]
fn all_fragments_are_one_flow() {
    let first = FiveTuple::of(&packet4((true, 0)));
    assert_eq!(seen(&packet4((true, 0))), (0, 0, Protocol::UDP));
    assert_eq!(first, FiveTuple::of(&packet4((true, 100))));
    assert_eq!(first, FiveTuple::of(&packet4((false, 200))));
    // Destination options follow the fragment header: only the first fragment shows them whole.
    let mut first = vec![60, 0, 0, 1, 0, 0, 0, 1];
    first.extend([17, 0, 1, 4, 0, 0, 0, 0]);
    let later = [60, 0, 0, 17, 0, 0, 0, 1];
    assert_eq!(FiveTuple::of(&packet6(44, &first)), FiveTuple::of(&packet6(44, &later)));
    assert_eq!(seen(&packet6(44, &first)), (0, 0, Protocol::FRAGMENT));
}

/// How often each bit of the hash flips when one bit of the key does, over many keys.
fn avalanche<const N: usize>(bits: &[usize], hash: impl Fn([u8; N]) -> u32) {
    const KEYS: u32 = 2000;
    let mut state = 1u64;
    let mut flips = vec![[0u32; 32]; bits.len()];
    for _ in 0..KEYS {
        let mut key = [0; N];
        for byte in &mut key {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            *byte = (state >> 56) as u8;
        }
        let before = hash(key);
        for (&bit, flips) in bits.iter().zip(&mut flips) {
            let mut other = key;
            other[bit / 8] ^= 1 << (bit % 8);
            let changed = before ^ hash(other);
            for (position, flips) in flips.iter_mut().enumerate() {
                *flips += changed >> position & 1;
            }
        }
    }
    for (&bit, flips) in bits.iter().zip(&flips) {
        for (position, &flips) in flips.iter().enumerate() {
            let share = f64::from(flips) / f64::from(KEYS);
            assert!((0.4..0.6).contains(&share), "key bit {bit}, hash bit {position}: {share}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "hundreds of thousands of hashes, of which each takes the same path")]
fn every_key_bit_moves_every_hash_bit() {
    let bits: Vec<_> = (0..13 * 8).collect();
    avalanche::<16>(&bits, |key| FiveTuple4::read_from_bytes(&key).unwrap().hash(7));
    let bits: Vec<_> = (0..37 * 8).collect();
    avalanche::<40>(&bits, |key| FiveTuple6::read_from_bytes(&key).unwrap().hash(7));
}

#[test]
#[cfg_attr(miri, ignore = "65,536 hashes, of which each takes the same path")]
fn spreads_counting_flows_evenly() {
    // 65,536 flows that differ in one port only, over 64 next hops: 1024 each on average.
    let mut next_hops = [0u32; 64];
    for port in 0..=0xffff {
        let flow = v4(("10.0.0.1", port), ("10.0.0.2", 80));
        next_hops[(flow.hash(0) >> 26) as usize] += 1;
    }
    assert!(next_hops.iter().all(|count| (850..1200).contains(count)), "{next_hops:?}");
}

proptest! {
    #[test]
    fn the_symmetric_key_joins_directions(a: u32, b: u32, ports: (u16, u16), seed: u64) {
        let ends = ((Ipv4Addr::from_bits(a), ports.0), (Ipv4Addr::from_bits(b), ports.1));
        let there = FiveTuple4::new(ends.0, ends.1, Protocol::TCP);
        let back = FiveTuple4::new(ends.1, ends.0, Protocol::TCP);
        prop_assert_eq!(there.rss(&SYMMETRIC_KEY), back.rss(&SYMMETRIC_KEY));
        prop_assert_eq!(there.hash(seed) == there.hash(!seed), false);
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in vec(any::<u8>(), 0..120), version in 0..3u8) {
        if let (true, Some(first)) = (version > 0, bytes.first_mut()) {
            *first = if version == 1 { 0x40 | *first & 0xf } else { 0x60 };
        }
        if let Some(flow) = FiveTuple::of(&bytes) {
            prop_assert_eq!(flow.hash(1), FiveTuple::of(&bytes).unwrap().hash(1));
            let _ = flow.rss(&MICROSOFT_KEY);
        }
    }
}
