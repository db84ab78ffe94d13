use super::*;
use proptest::prelude::*;

fn v4(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

#[test]
fn reads_text() {
    let prefix: Ipv4Prefix = "192.0.2.128/25".parse().unwrap();
    assert_eq!((prefix.address(), prefix.length()), (v4("192.0.2.128"), 25));
    assert_eq!((prefix.mask(), prefix.last()), (v4("255.255.255.128"), v4("192.0.2.255")));
    assert!(prefix.contains(v4("192.0.2.129")) && !prefix.contains(v4("192.0.2.127")));
    let prefix: Ipv6Prefix = "2001:db8::/32".parse().unwrap();
    assert!(prefix.contains("2001:db8:ffff::1".parse().unwrap()));
    assert!(!prefix.contains("2001:db9::".parse().unwrap()));
    assert!(Ipv6Prefix::ALL.contains("ffff::".parse().unwrap()));
}

#[test]
fn refuses_with_a_remedy() {
    let refusal = |text: &str| text.parse::<Ipv4Prefix>().unwrap_err();
    assert_eq!(
        refusal("10.0.0.1/8").to_string(),
        "10.0.0.1/8 has bits beyond its length: 10.0.0.0/8 would be right"
    );
    assert_eq!(refusal("10.0.0.0/33"), PrefixError::Length { length: 33, bits: 32 });
    assert_eq!(refusal("10.0.0.0/256"), PrefixError::Length { length: 256, bits: 32 });
    for text in ["", "10.0.0.0", "10.0.0.0/", "10.0.0.0/+8", "10.0.0/8", "::/0", "10.0.0.0/8/8"] {
        assert_eq!(refusal(text), PrefixError::Syntax(text.into()));
    }
}

#[test]
fn takes_masks() {
    let made = Ipv4Prefix::from_mask(v4("10.1.0.0"), v4("255.255.0.0")).unwrap();
    assert_eq!(made.to_string(), "10.1.0.0/16");
    let refusal = Ipv4Prefix::from_mask(v4("10.0.0.0"), v4("255.0.255.0"));
    assert_eq!(refusal, Err(PrefixError::Mask("255.0.255.0".into())));
    let refusal = Ipv4Prefix::from_mask(v4("10.1.0.0"), v4("255.0.0.0"));
    assert!(matches!(refusal, Err(PrefixError::HostBits { .. })));
    assert_eq!(Ipv4Prefix::from_mask(v4("0.0.0.0"), v4("0.0.0.0")), Ok(Ipv4Prefix::ALL));
}

#[test]
fn broadcasts() {
    let broadcast = |text: &str| text.parse::<Ipv4Prefix>().unwrap().broadcast();
    assert_eq!(broadcast("192.0.2.0/30"), Some(v4("192.0.2.3")));
    assert_eq!(broadcast("192.0.2.0/31"), None);
    assert_eq!(broadcast("192.0.2.0/32"), None);
}

proptest! {
    #[test]
    fn v4_round_trips(bits: u32, length in 0..=32u8, other: u32) {
        let prefix = Ipv4Prefix::containing(Ipv4Addr::from_bits(bits), length).unwrap();
        prop_assert_eq!(prefix.to_string().parse(), Ok(prefix));
        prop_assert_eq!(Ipv4Prefix::from_mask(prefix.address(), prefix.mask()), Ok(prefix));
        let common = (bits ^ other).leading_zeros() >= u32::from(length);
        prop_assert_eq!(prefix.contains(Ipv4Addr::from_bits(other)), common);
    }

    #[test]
    fn v6_round_trips(bits: u128, length in 0..=128u8, flip in 0..128u32) {
        let prefix = Ipv6Prefix::containing(Ipv6Addr::from_bits(bits), length).unwrap();
        prop_assert_eq!(prefix.to_string().parse(), Ok(prefix));
        let other = Ipv6Addr::from_bits(bits ^ 1 << (127 - flip));
        prop_assert_eq!(prefix.contains(other), flip >= u32::from(length));
        prop_assert_eq!(prefix.covers(Ipv6Prefix::host(other)), flip >= u32::from(length));
    }

    #[test]
    fn arbitrary_text_never_panics(text in ".{0,24}") {
        let _ = text.parse::<Ipv4Prefix>();
        let _ = text.parse::<Ipv6Prefix>();
    }
}
