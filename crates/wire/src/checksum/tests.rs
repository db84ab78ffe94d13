use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// RFC 1071 in the plainest words: add, carry round, complement.
fn slow(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        if sum > 0xffff {
            sum -= 0xffff;
        }
    }
    !(sum as u16)
}

#[test]
fn sums_the_example_of_rfc_1071() {
    let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(of(&bytes), !0xddf2);
}

#[test]
fn nothing_is_lost_in_megabytes_of_ones() {
    // Miri takes a minute for each megabyte.
    let bytes = vec![0xff; if cfg!(miri) { 1 << 12 } else { 4 << 20 } + 7];
    let mut target = vec![0; bytes.len()];
    assert_eq!(of(&bytes), slow(&bytes));
    assert_eq!(Sum::new().copy(&bytes, &mut target).finish(), slow(&bytes));
    assert!(target == bytes);
}

#[test]
fn verifies_a_known_header() {
    let mut header = [
        0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0,
        0xc7,
    ];
    assert!(ipv4_header_is_valid(&header));
    header[11] ^= 1;
    assert!(!ipv4_header_is_valid(&header));
}

#[test]
fn updates_the_corner_of_rfc_1624() {
    // RFC 1624 4: the old equation gives 0xffff here.
    assert_eq!(update_u16(0xdd2f, 0x5555, 0x3285), 0x0000);
}

#[test]
fn udp_never_writes_zero() {
    let sum = Sum::new().u16(0xffff);
    assert_eq!((sum.finish(), sum.finish_udp()), (0, 0xffff));
}

#[test]
fn pseudo_headers_equal_their_bytes() {
    let (a, b) = (Ipv4Addr::new(10, 1, 2, 3), Ipv4Addr::new(192, 168, 255, 254));
    let bytes = [10, 1, 2, 3, 192, 168, 255, 254, 0, 17, 0x12, 0x34];
    assert_eq!(Sum::new().pseudo_v4(a, b, Protocol::UDP, 0x1234).finish(), slow(&bytes));

    let (a, b): (Ipv6Addr, Ipv6Addr) =
        ("2001:db8::1".parse().unwrap(), "fe80::ff:1".parse().unwrap());
    let mut bytes = [a.octets(), b.octets()].concat();
    bytes.extend([0, 1, 0x23, 0x45, 0, 0, 0, 58]);
    assert_eq!(Sum::new().pseudo_v6(a, b, Protocol::ICMPV6, 0x12345).finish(), slow(&bytes));
}

proptest! {
    #[test]
    fn equals_the_slow_one(bytes in vec(any::<u8>(), 0..600), skip in 0..9usize) {
        let slice = &bytes[skip.min(bytes.len())..];
        prop_assert_eq!(of(slice), slow(slice));
    }

    #[test]
    fn parts_equal_the_whole(bytes in vec(any::<u8>(), 0..200), cut in 0..100usize) {
        let (a, b) = bytes.split_at((cut * 2).min(bytes.len() & !1));
        prop_assert_eq!(Sum::new().bytes(a).bytes(b).finish(), slow(&bytes));
    }

    #[test]
    fn a_copy_is_whole_and_summed(bytes in vec(any::<u8>(), 0..600), skip in 0..9usize, short in 0..9usize) {
        let source = &bytes[skip.min(bytes.len())..];
        let mut target = vec![0xee; source.len().saturating_sub(short)];
        let sum = Sum::new().copy(source, &mut target);
        prop_assert_eq!(&target[..], &source[..target.len()]);
        prop_assert_eq!(sum.finish(), slow(&target));
    }

    #[test]
    fn pieces_of_any_length_join(bytes in vec(any::<u8>(), 0..300), cuts in vec(0..300usize, 0..4)) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        cuts.push(bytes.len());
        let (mut sum, mut start) = (Sum::new(), 0);
        for cut in cuts {
            sum = sum.join(Sum::new().bytes(&bytes[start..cut]), start);
            start = cut;
        }
        prop_assert_eq!(sum.finish(), slow(&bytes));
    }

    #[test]
    fn the_header_check_equals_the_slow_one(mut header: [u8; 20], intact: bool) {
        if intact {
            header[10..12].fill(0);
            let checksum = slow(&header);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        let zero = header == [0; 20];
        prop_assert_eq!(ipv4_header_is_valid(&header), slow(&header) == 0 && !zero);
        prop_assert!(!intact || zero || ipv4_header_is_valid(&header));
    }

    #[test]
    fn updates_equal_a_new_sum(mut words in vec(prop_oneof![Just(0u16), Just(0xffff), any::<u16>()], 3..12), new: u32, corner in 0..4u8) {
        // A header's first word is never zero, so the sum never is: the one case in which
        // RFC 1624 and a new sum may differ.
        words[0] = 0x4500;
        let new = match corner { 0 => 0, 1 => 0xffff_ffff, _ => new };
        let bytes = |words: &[u16]| words.iter().flat_map(|w| w.to_be_bytes()).collect::<Vec<_>>();
        let checksum = slow(&bytes(&words));
        let old = u32::from(words[1]) << 16 | u32::from(words[2]);
        words[1] = (new >> 16) as u16;
        let half = update_u16(checksum, (old >> 16) as u16, words[1]);
        prop_assert_eq!(half, slow(&bytes(&words)));
        words[2] = new as u16;
        prop_assert_eq!(update_u32(checksum, old, new), slow(&bytes(&words)));
    }
}
